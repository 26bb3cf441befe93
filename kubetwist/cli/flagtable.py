"""The flags of C{twist kubeapi}: kube-apiserver's names and meanings where it has them, and a few of our own."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any, Final

from .flags import (
    compatibility as otherflags,
)
from .flags import (
    metrics as metricflags,
)
from .flags import (
    secureserving as servingflags,
)
from .flags.auditing import ROWS as AUDIT_ROWS
from .flagtypes import (
    ADDRESS,
    BOOLEAN,
    CIDRS,
    DURATION,
    INTEGER,
    LEVEL,
    MAPPING,
    MEMORY,
    MODULES,
    NATURAL,
    NETWORKS,
    PAIR,
    PORT,
    PORT_RANGE,
    POSITIVE,
    SIZES,
    STRING,
    STRING_ARRAY,
    STRINGS,
    SWITCHES,
    Flag,
    Kind,
    one_of,
)

#: The link, where clouds have their metadata services, and those of them that are elsewhere.
METADATA_SERVICES: Final = tuple(
    ipaddress.ip_network(one)
    for one in ("169.254.0.0/16", "fe80::/10", "100.100.100.200/32", "fd00:ec2::254/128", "fd20:ce::254/128")
)

#: Which release is stood in for unless --kubernetes-version says otherwise.
DEFAULT_KUBERNETES_VERSION: Final = "1.36"

_TABLE: Final[dict[str, list[tuple[str, Kind, Any, str]]]] = {
    "kubetwist": [
        (
            "data-dir",
            STRING,
            "./kubetwist-data",
            "Where certificates, keys, admin.kubeconfig and the embedded store are. Made at the first start.",
        ),
        (
            "in-memory",
            BOOLEAN,
            False,
            "Keep nothing: objects are in memory, and the data directory, unless it is given, is a new temporary one "
            "that is removed at the end.",
        ),
        (
            "kubernetes-version",
            STRING,
            DEFAULT_KUBERNETES_VERSION,
            "The Kubernetes release whose API is served, 1.25 or later.",
        ),
        ("enable-ui", BOOLEAN, True, "Whether there is a web page at /ui that shows what the server holds."),
        (
            "ui-sign-in-link",
            BOOLEAN,
            True,
            "Log, at the start, a link that signs a browser on this machine in to the web page as the admin; it is "
            "valid once, for 15 minutes.",
        ),
        (
            "enable-swagger-ui",
            BOOLEAN,
            True,
            "Whether there is, with the web page, Swagger UI at /swagger-ui: all requests that the server knows, to "
            "read and to try.",
        ),
    ],
    "Generic": [
        (
            "advertise-address",
            ADDRESS,
            "",
            "The IP address under which others reach this server; the one of --bind-address without it.",
        ),
        ("external-hostname", STRING, "", "The host name under which others reach this server."),
        ("feature-gates", SWITCHES, {}, "Switches of features, as Name=true or Name=false."),
        (
            "enable-priority-and-fairness",
            BOOLEAN,
            True,
            "Whether FlowSchemas and PriorityLevelConfigurations decide which requests go first. Requests are only"
            " counted without it.",
        ),
        ("max-requests-inflight", NATURAL, 400, "How many requests that only read may be open at a time; 0 for all."),
        (
            "max-mutating-requests-inflight",
            NATURAL,
            200,
            "How many other requests may be open at a time; 0 for all. Priority levels share the sum of both.",
        ),
        (
            "max-connections-per-address",
            NATURAL,
            0,
            "How many connections may be open from one address, or from one network of IPv6 with a prefix of 64 bits;"
            " 0 for three quarters of the files that the process may have open.",
        ),
        (
            "memory-limit",
            MEMORY,
            None,
            "Memory that the process may use, as 512Mi: requests are answered 429 before it is reached. 0 for no limit;"
            " without the flag the limit is that of the control group (cgroup), or of the address space (ulimit -v).",
        ),
        (
            "min-request-timeout",
            NATURAL,
            1800,
            "The least number of seconds that watches last which set no timeout themselves.",
        ),
        (
            "request-timeout",
            DURATION,
            60.0,
            "How long a request may take before it is answered with an error. Watches and the like are exempt.",
        ),
        (
            "shutdown-delay-duration",
            DURATION,
            0.0,
            "How long the server goes on as usual after it was told to stop, but for /readyz, which fails at once.",
        ),
    ],
    "Etcd": [
        (
            "storage-backend",
            STRING,
            "sqlite",
            "What objects are stored in: sqlite, memory, etcd3 (as --etcd-servers says), or one that a plugin brings.",
        ),
        (
            "allow-lost-writes",
            BOOLEAN,
            False,
            "Start although the embedded store has lost acknowledged writes: its write-ahead log is damaged, or it is"
            " older than its high-water mark. Such a store is refused without this flag.",
        ),
        ("etcd-servers", STRINGS, (), "The members of etcd, as http://host:port or https://host:port."),
        ("etcd-cafile", STRING, "", "Authorities that the members' certificates must come from."),
        ("etcd-certfile", STRING, "", "The certificate that members are shown."),
        ("etcd-keyfile", STRING, "", "The key of --etcd-certfile."),
        ("etcd-healthcheck-timeout", DURATION, 2.0, "How long etcd may take to answer when /livez asks."),
        ("etcd-readycheck-timeout", DURATION, 2.0, "How long etcd may take to answer when /readyz asks."),
        ("lease-reuse-duration-seconds", NATURAL, 60, "How long a lease of etcd is used for new keys at most."),
        ("etcd-prefix", STRING, "/registry", "What all keys in the store begin with."),
        (
            "encryption-provider-config",
            STRING,
            "",
            "A file with an EncryptionConfiguration: which resources are encrypted in the store, how, and with which"
            " keys.",
        ),
        (
            "encryption-provider-config-automatic-reload",
            BOOLEAN,
            False,
            "Whether --encryption-provider-config is read again when it changes.",
        ),
        ("etcd-compaction-interval", DURATION, 300.0, "How often old revisions are forgotten. 0 keeps them all."),
        ("delete-collection-workers", POSITIVE, 1, "How many objects one deletecollection deletes at a time."),
        ("watch-cache", BOOLEAN, True, "Whether reads and watches are answered from memory."),
        (
            "watch-cache-sizes",
            SIZES,
            {},
            "How many past events are kept for watches, by resource, as resource[.group]#size; 0 for no cache.",
        ),
        ("default-watch-cache-size", NATURAL, 100, "The same for all others."),
    ],
    "Secure serving": [
        (
            "bind-address",
            ADDRESS,
            "127.0.0.1",
            "The IP address to listen on. Without it all of this machine's, where --advertise-address tells others to"
            " come.",
        ),
        ("secure-port", PORT, 6443, "The port to listen on; 0 takes a free one."),
        (
            "cert-dir",
            STRING,
            "",
            "Where apiserver.crt and apiserver.key are, and are made when missing; in the data directory without it.",
        ),
        ("tls-cert-file", STRING, "", "The serving certificate, followed by its issuers."),
        ("tls-private-key-file", STRING, "", "The key of --tls-cert-file."),
        (
            "tls-min-version",
            one_of("VersionTLS12", "VersionTLS13"),
            "VersionTLS12",
            "The lowest version of TLS that is spoken.",
        ),
        ("disable-http2-serving", BOOLEAN, True, "HTTP/1.1 is what is served; false is not possible yet."),
    ],
    "Authentication": [
        ("anonymous-auth", BOOLEAN, True, "Whether requests without credentials are those of system:anonymous."),
        (
            "authentication-config",
            STRING,
            "",
            "A file with an AuthenticationConfiguration: issuers of JSON Web Tokens, and where anonymous requests may"
            " go. Read again when it changes.",
        ),
        (
            "authentication-token-webhook-config-file",
            STRING,
            "",
            "A kubeconfig that says how to call the webhook that knows tokens. Read again when it changes.",
        ),
        (
            "authentication-token-webhook-cache-ttl",
            DURATION,
            120.0,
            "For how long what that webhook says of a token is remembered; 0 for not at all.",
        ),
        (
            "authentication-token-webhook-version",
            one_of("v1", "v1beta1"),
            "v1beta1",
            "The version of the TokenReviews that it is sent.",
        ),
        (
            "client-ca-file",
            STRING,
            "",
            "Authorities whose client certificates are accepted, besides the one of the data directory.",
        ),
        (
            "enable-bootstrap-token-auth",
            BOOLEAN,
            False,
            "Whether secrets of type bootstrap.kubernetes.io/token in kube-system are tokens.",
        ),
        ("oidc-issuer-url", STRING, "", "An OpenID Connect issuer, https, whose tokens are accepted."),
        ("oidc-client-id", STRING, "", "What the tokens of --oidc-issuer-url must be meant for."),
        ("oidc-ca-file", STRING, "", "The authorities of --oidc-issuer-url; those of the system without it."),
        ("oidc-username-claim", STRING, "sub", "The claim that names the user."),
        (
            "oidc-username-prefix",
            STRING,
            "",
            "What user names begin with; without it the URL of the issuer and #, unless the claim is email. - for"
            " nothing.",
        ),
        ("oidc-groups-claim", STRING, "", "The claim that names the groups of the user, one or several."),
        ("oidc-groups-prefix", STRING, "", "What the names of such groups begin with."),
        ("oidc-required-claim", PAIR, {}, "A claim that tokens must have, as key=value; may be given several times."),
        (
            "oidc-signing-algs",
            STRINGS,
            ("RS256",),
            "How tokens may be signed: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512.",
        ),
        (
            "requestheader-client-ca-file",
            STRING,
            "",
            "Authorities of proxies that say in headers whom they speak for.",
        ),
        (
            "requestheader-allowed-names",
            STRINGS,
            (),
            "Common names of such proxies; whoever those authorities vouch for without it.",
        ),
        ("requestheader-username-headers", STRINGS, (), "Where they say the user name. X-Remote-User is common."),
        ("requestheader-uid-headers", STRINGS, (), "Where they say the uid. X-Remote-Uid is common."),
        ("requestheader-group-headers", STRINGS, (), "Where they say groups. X-Remote-Group is common."),
        (
            "requestheader-extra-headers-prefix",
            STRINGS,
            (),
            "What headers begin with in which they say more. X-Remote-Extra- is common.",
        ),
        (
            "token-auth-file",
            STRING,
            "",
            "Users of bearer tokens, as CSV: token, name, uid and, in quotes, groups.",
        ),
        (
            "api-audiences",
            STRINGS,
            (),
            "What service account tokens must be meant for; --service-account-issuer without it.",
        ),
        (
            "service-account-issuer",
            STRING_ARRAY,
            ("https://kubernetes.default.svc.cluster.local",),
            "Who issues service account tokens. Tokens of others that are named too are accepted.",
        ),
        (
            "service-account-key-file",
            STRING_ARRAY,
            (),
            "Public keys for service account tokens; the one of the key that signs them without it.",
        ),
        (
            "service-account-extend-token-expiration",
            BOOLEAN,
            True,
            "Whether tokens that kubelets ask for are good for a year, as old clients read them only once.",
        ),
        (
            "service-account-max-token-expiration",
            DURATION,
            0.0,
            "The longest life of a service account token; longer ones are shortened. 0 for no limit.",
        ),
        (
            "service-account-lookup",
            BOOLEAN,
            True,
            "Whether service account tokens from secrets end with those secrets.",
        ),
        (
            "service-account-jwks-uri",
            STRING,
            "",
            "Where those who verify service account tokens are told to find the keys; at this server without it.",
        ),
    ],
    "Authorization": [
        (
            "authorization-mode",
            STRINGS,
            (),
            "Who is asked whether a request is allowed, in this order. Members of system:masters may do everything.",
        ),
        (
            "authorization-policy-file",
            STRING,
            "",
            "What the mode ABAC allows: a JSON object a line. Read again when it changes.",
        ),
        (
            "authorization-config",
            STRING,
            "",
            "A file with an AuthorizationConfiguration, instead of --authorization-mode and --authorization-webhook-*:"
            " several webhooks, and what they are asked about. Read again when it changes.",
        ),
        (
            "authorization-webhook-config-file",
            STRING,
            "",
            "A kubeconfig that says how to call the webhook of the mode Webhook. Read again when it changes.",
        ),
        (
            "authorization-webhook-cache-authorized-ttl",
            DURATION,
            300.0,
            "For how long it is remembered what that webhook allows; 0 for not at all.",
        ),
        (
            "authorization-webhook-cache-unauthorized-ttl",
            DURATION,
            30.0,
            "For how long it is remembered what that webhook does not allow; 0 for not at all.",
        ),
        (
            "authorization-webhook-version",
            one_of("v1", "v1beta1"),
            "v1beta1",
            "The version of the SubjectAccessReviews that it is sent.",
        ),
    ],
    "Auditing": AUDIT_ROWS,
    "API enablement": [
        (
            "runtime-config",
            MAPPING,
            {},
            "Switches API groups, versions and resources on and off: <group>/<version>[/<resource>]=true|false,"
            " api/all, api/ga, api/beta, api/alpha.",
        ),
    ],
    "Admission": [
        ("enable-admission-plugins", STRINGS, (), "Admission plugins to switch on besides the default ones."),
        ("disable-admission-plugins", STRINGS, (), "Admission plugins to switch off."),
        (
            "admission-control-config-file",
            STRING,
            "",
            "An AdmissionConfiguration, which has the configurations of admission plugins.",
        ),
        (
            "webhook-url-denied-cidrs",
            CIDRS,
            METADATA_SERVICES,
            "Networks that the URL of a webhook in an object of the API may not lead to: one for admission, or for"
            " the conversion of custom resources. By default the link, and metadata services of clouds; empty for"
            " none.",
        ),
        (
            "default-not-ready-toleration-seconds",
            INTEGER,
            300,
            "How long pods that do not say so themselves stay on a node that is not ready.",
        ),
        (
            "default-unreachable-toleration-seconds",
            INTEGER,
            300,
            "How long pods that do not say so themselves stay on a node that can not be reached.",
        ),
    ],
    "Controllers": [
        (
            "controllers",
            STRINGS,
            ("*",),
            "Which controllers run here, by kube-controller-manager's names: * means all that are on by default, name"
            " or +name that one, -name all but that one. An empty list switches all off.",
        ),
        (
            "pretend-nodes",
            NATURAL,
            0,
            "How many nodes there are that run pods in appearance only, for tests; pods are scheduled to them. At most"
            " 1000.",
        ),
    ],
    "Features": [
        (
            "profiling",
            BOOLEAN,
            True,
            "Whether /debug/pprof tells what the process is busy with, and /debug/flags/v sets -v.",
        ),
    ],
    "Logs": [
        ("logging-format", one_of("text", "json"), "text", "How log lines are written."),
        (
            "v",
            LEVEL,
            0,
            "How much is logged: from 3 on a line about every request, from 4 on what is for debugging. Bodies never.",
        ),
        ("vmodule", MODULES, (), "How much single modules log, as pattern=N,...; httplog tells of requests."),
    ],
    "Traces": [
        (
            "tracing-config-file",
            STRING,
            "",
            "A file with an apiserver.config.k8s.io/v1 TracingConfiguration: how many requests are traced, and which"
            " OpenTelemetry collector is sent their spans. Needs kubetwist[tracing].",
        ),
    ],
    "Kubelets and proxies": [
        (
            "kubelet-certificate-authority",
            STRING,
            "",
            "Authorities that kubelets' serving certificates must come from; without it any certificate will do. Read"
            " again when it changes.",
        ),
        (
            "kubelet-client-certificate",
            STRING,
            "",
            "What kubelets are shown; without it a certificate of the data directory's authority. Read again when it"
            " changes.",
        ),
        ("kubelet-client-key", STRING, "", "The key of --kubelet-client-certificate."),
        (
            "kubelet-preferred-address-types",
            STRINGS,
            ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"),
            "At which of its addresses a node's kubelet is called, best first.",
        ),
        ("kubelet-port", PORT, 10250, "The port of kubelets whose nodes do not tell it."),
        ("kubelet-timeout", DURATION, 5.0, "How long a kubelet may take to accept a connection."),
        (
            "allow-loopback-proxy",
            BOOLEAN,
            False,
            "Whether kubelets and the targets of proxies of nodes, pods and services may have addresses of this"
            " machine, such as 127.0.0.1 or those of its network interfaces: for tests, simulated kubelets, and a"
            " kubelet on the machine of the server.",
        ),
    ],
    "Misc": [
        ("enable-logs-handler", BOOLEAN, False, "Whether /logs shows the files of --logs-directory."),
        ("logs-directory", STRING, "/var/log", "What --enable-logs-handler shows; links in it are not followed."),
        (
            "aggregator-reject-forwarding-redirect",
            BOOLEAN,
            True,
            "Whether redirects of other API servers are answered as errors. They always are.",
        ),
        ("allow-privileged", BOOLEAN, False, "Whether containers may be privileged."),
        (
            "enable-aggregator-routing",
            BOOLEAN,
            False,
            "Connect to the endpoints of services that API servers are behind, not to their cluster IPs.",
        ),
        (
            "endpoint-reconciler-type",
            one_of("lease", "master-count", "none"),
            "lease",
            "How servers that share a storage are found behind the service kubernetes: lease, while they live;"
            " master-count, as many as --apiserver-count says, dead or alive; or none, to leave its endpoints alone.",
        ),
        ("apiserver-count", POSITIVE, 1, "How many servers there are, for --endpoint-reconciler-type=master-count."),
        ("event-ttl", DURATION, 3600.0, "How long events are kept."),
        (
            "proxy-client-cert-file",
            STRING,
            "",
            "The certificate by which other API servers know this one, when it hands requests on to them; one of the"
            " data directory without it.",
        ),
        ("proxy-client-key-file", STRING, "", "The key of --proxy-client-cert-file."),
        (
            "service-account-signing-key-file",
            STRING,
            "",
            "The private key that signs service account tokens; that of the data directory without it.",
        ),
        ("service-cluster-ip-range", NETWORKS, ("10.0.0.0/24",), "Where the addresses of services come from."),
        ("service-node-port-range", PORT_RANGE, (30000, 32767), "Where the node ports of services come from."),
    ],
}


def _flags() -> Iterator[Flag]:
    for table in (_TABLE, servingflags.ROWS, metricflags.ROWS, otherflags.ROWS):
        for section, rows in table.items():
            for name, kind, default, text in rows:
                yield Flag(name, kind, default, text, section)


FLAGS: Final = tuple(_flags())
