"""Tests for L{kubetwist.storage.encryption._configuration}."""

from __future__ import annotations

import contextlib
from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.configurations import ConfigurationError
from kubetwist.api.resource import GroupResource
from kubetwist.storage.encryption._configuration import (
    Key,
    KeyService,
    Provider,
    Rule,
    load_configuration,
)

HEAD = "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\n"
SECRET = "c2VjcmV0IGlzIHNlY3VyZQ=="
IDENTITY = "identity: {}"


def key(secret: str = SECRET, name: str = "k") -> str:
    """Return a list of one key."""
    return f"{{keys: [{{name: {name}, secret: {secret}}}]}}"


def rule(providers: str, resources: str = "secrets") -> str:
    """Return a rule of the configuration."""
    return f"- resources: [{resources}]\n  providers: [{providers}]\n"


def kms(**fields: object) -> str:
    """Return a key management service."""
    given = {"apiVersion": "v2", "name": "foo", "endpoint": "unix:///run/kms.sock", **fields}
    return f"{{kms: {{{', '.join(f'{name}: {value}' for name, value in given.items() if value is not None)}}}}}"


def loaded(text: str, reload: bool = False) -> tuple[Rule, ...]:
    """Return the rules of a configuration with the rules C{text}."""
    return load_configuration((HEAD + "resources:\n" + text).encode(), "/etc/enc.yaml", reload=reload)


class LoadTests(SynchronousTestCase):
    """Parsing of valid configurations."""

    def test_all(self) -> None:
        """Every provider is parsed, with its keys and defaults, for the resources of its rule."""
        box = b64encode(bytes(32)).decode()
        providers = [
            f"{{aesgcm: {key()}}}",
            f"{{aescbc: {key(name='two')}}}",
            f"{{secretbox: {key(box)}}}",
            kms(),
            kms(name="bar", timeout="1m", endpoint="unix:///@abstract"),
            "{identity: {}}",
        ]
        text = rule(", ".join(providers), "pandas.awesome.bears.example, '*.apps', '*.'")
        (result,) = loaded(text)
        self.assertEqual(
            result.resources,
            (
                GroupResource("awesome.bears.example", "pandas"),
                GroupResource("apps", "*"),
                GroupResource("", "*"),
            ),
        )
        secret = b"secret is secure"
        self.assertEqual(
            result.providers,
            (
                Provider("aesgcm", (Key("k", secret),)),
                Provider("aescbc", (Key("two", secret),)),
                Provider("secretbox", (Key("k", bytes(32)),)),
                Provider("kms", service=KeyService("foo", "/run/kms.sock", 3.0)),
                Provider("kms", service=KeyService("bar", "@abstract", 60.0)),
                Provider("identity"),
            ),
        )

    def test_no_secrets(self) -> None:
        """The representation of a key does not contain its secret."""
        (result,) = loaded(rule(f"{{aesgcm: {key()}}}"))
        self.assertNotIn("secure", repr(result))

    def test_order(self) -> None:
        """A resource may have several rules; a wider rule follows it."""
        text = rule(IDENTITY, "events") + rule(IDENTITY, "secrets") + rule(IDENTITY, "secrets")
        self.assertEqual(
            len(loaded(text + rule(IDENTITY, "'*.apps'") + rule(IDENTITY, "'*.'") + rule(IDENTITY, "'*.*'"))), 6
        )

    def refused(self, text: str, reload: bool = False) -> str:
        """Return the error of an invalid configuration."""
        error = str(self.assertRaises(ConfigurationError, loaded, text, reload))
        for secret in (SECRET, "secret is secure", "hunter2"):
            self.assertNotIn(secret, error)
        return error

    def problem(self, text: str, reload: bool = False) -> str:
        """Return the error of a field."""
        error = self.refused(text, reload)
        start = "error while parsing file: "
        self.assertTrue(error.startswith(start), error)
        return error.removeprefix(start)

    def test_masked(self) -> None:
        """A rule after a wider one is rejected, since it would not be used."""
        for first, second, problem in (
            ("'*.'", "secrets", 'resource "secrets" is masked by earlier rule "*."'),
            ("'*.'", "'*.'", 'resource "*." is masked by earlier rule "*."'),
            ("'*.foo'", "'*.foo'", 'resource "*.foo" is masked by earlier rule "*.foo"'),
            ("'*.foo'", "bar.foo", 'resource "bar.foo" is masked by earlier rule "*.foo"'),
            ("'*.*'", "'*.*'", 'resource "*.*" is masked by earlier rule "*.*"'),
            ("'*.*'", "secrets", 'resource "secrets" is masked by earlier rule "*.*"'),
            ("'*.*'", "'*.'", 'resource "*." is masked by earlier rule "*.*"'),
        ):
            text = rule(IDENTITY, first) + rule(IDENTITY, second)
            self.assertEqual(self.refused(text), f"error while building transformers: {problem}")

    def test_structure(self) -> None:
        """Missing required fields are errors."""
        for text, problem in (
            ("", "resources: Required value: at least one resources is required"),
            (
                rule(IDENTITY, ""),
                "resources[0].resources: Required value: at least one resources[0].resources is required",
            ),
            (rule(""), "resources[0].providers: Required value: at least one resources[0].providers is required"),
            (
                rule("{}"),
                'resources[0].providers[0]: Invalid value: {"AESCBC":null,"AESGCM":null,"Identity":null,"KMS":null,'
                '"Secretbox":null}: provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, '
                "Secretbox, Identity",
            ),
            (
                rule("{aesgcm: {keys: []}}"),
                "resources[0].providers[0].aesgcm.keys: Required value: at least one keys is required",
            ),
            (
                rule("{aescbc: {keys: [{}]}}"),
                "[resources[0].providers[0].aescbc.keys[0].name: Required value: name is a mandatory field for a key, "
                "resources[0].providers[0].aescbc.keys[0].secret: Required value: secret is a mandatory field for a "
                "key]",
            ),
        ):
            self.assertEqual(self.problem(text), problem)

    def test_two_providers(self) -> None:
        """Two providers in one element are rejected; unlike the reference's, the error does not contain their keys."""
        problem = self.problem(rule(f"{{aesgcm: {key()}, identity: {{}}}}"))
        self.assertIn('{"AESCBC":null,"AESGCM":{"Keys":[{"Name":"k","Secret":"REDACTED"}]},"Identity":{},', problem)
        self.assertTrue(
            problem.endswith(
                "more than one provider specified in a single element, should split into different list elements"
            )
        )

    def test_keys(self) -> None:
        """A key has one of the lengths that its cipher supports, in base64."""
        for kind, secret, problem in (
            ("aesgcm", "YQ==", "secret is not of the expected length, got 1, expected one of [16 24 32]"),
            ("secretbox", SECRET, "secret is not of the expected length, got 16, expected one of [32]"),
            ("aescbc", "hunter2!!!", "secrets must be base64 encoded"),
            ("aescbc", "hunter2", "secrets must be base64 encoded"),
        ):
            where = f"resources[0].providers[0].{kind}.keys[0].secret"
            self.assertEqual(
                self.problem(rule(f"{{{kind}: {key(secret)}}}")), f'{where}: Invalid value: "REDACTED": {problem}'
            )

    def test_resources(self) -> None:
        """Resources that cannot be encrypted, or with an invalid pattern, are rejected."""
        for resource, problem in (
            ("Secrets", "resource name should not contain capital letters"),
            ("'*'", "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"),
            ("apiserveripinfo", "resources which do not have REST API/s cannot be encrypted"),
            ("serviceipallocations", "resources which do not have REST API/s cannot be encrypted"),
            (
                "events.events.k8s.io",
                "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in "
                "the config file",
            ),
            ("'*.extensions'", "'extensions' group has been removed and cannot be used for encryption"),
            ("'secrets.*'", "encrypting the same resource across groups is not supported"),
        ):
            plain = resource.strip("'")
            self.assertEqual(
                self.problem(rule(IDENTITY, resource)),
                f'resources[0].resources[0]: Invalid value: "{plain}": {problem}',
            )

    def test_overlaps(self) -> None:
        """Duplicate and overlapping resources in one list are rejected."""
        twice = "the same resource cannot be specified multiple times"
        overlap = (
            "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they "
            "will be masked"
        )
        for resources, problems in (
            (["secrets", "secrets"], [twice]),
            (["secrets", "*."], [overlap]),
            (["*.apps", "deployments.apps"], [overlap]),
            (["*.*", "secrets"], [overlap]),
            (["*.apps", "*.apps"], [twice, overlap]),
            (["*.*", "*.*"], [twice, overlap]),
            (["a", "a", "*."], [twice, overlap]),
        ):
            shown = '["' + '","'.join(resources) + '"]'
            texts = [f"resources[0].resources: Invalid value: {shown}: {problem}" for problem in problems]
            expected = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
            self.assertEqual(self.problem(rule(IDENTITY, ", ".join(f"'{one}'" for one in resources))), expected)
        self.assertEqual(len(loaded(rule(IDENTITY, "'*.', '*.apps', secrets.x.example"))), 1)

    def test_services(self) -> None:
        """A key management service has a unique name, a socket, and no settings of another version."""
        where = "resources[0].providers[0].kms."
        for provider, problem in (
            (kms(name="''"), f"{where}name: Required value: name is a mandatory field for a provider"),
            (
                kms(name="'a:b'"),
                f"{where}name: Invalid value: \"a:b\": invalid KMS provider name a:b, must not contain ':'",
            ),
            (kms(timeout="0s"), f'{where}timeout: Invalid value: "0s": timeout should be a positive value'),
            (kms(timeout="-1s"), f'{where}timeout: Invalid value: "-1s": timeout should be a positive value'),
            (kms(endpoint="''"), f'{where}endpoint: Invalid value: "": endpoint is a mandatory field for a kms'),
            (
                kms(endpoint="'https://x'"),
                f'{where}endpoint: Invalid value: "https://x": unsupported scheme "https" for KMS provider, only unix '
                "is supported",
            ),
            (
                kms(endpoint="'unix:///%zz'"),
                f'{where}endpoint: Invalid value: "unix:///%zz": invalid endpoint for kms provider, error: parse '
                '"unix:///%zz": invalid URL escape "%zz"',
            ),
            (kms(cachesize=5), f"{where}cachesize: Invalid value: 5: cachesize is not supported in v2"),
            (
                kms(apiVersion="v1", cachesize=0),
                f"{where}cachesize: Invalid value: 0: cachesize should be a positive value, or negative to disable",
            ),
            (
                kms(apiVersion="v3"),
                f'{where}apiVersion: Invalid value: "v3": unsupported apiVersion apiVersion for KMS provider, only v1 '
                "and v2 are supported",
            ),
        ):
            self.assertEqual(self.problem(rule(provider)), problem)
        self.assertEqual(
            self.problem(rule(kms()) + rule(kms())),
            'resources[1].providers[0].kms.name: Invalid value: "foo": duplicate KMS provider name foo, names must be '
            "unique",
        )

    def test_version_one(self) -> None:
        """Services of version 1, which is the default version, are rejected; on reload the error names each twice."""
        text = (
            "error while building transformers: KMSv1 is deprecated and will only receive security updates going "
            "forward. Use KMSv2 instead.  Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature."
        )
        self.assertEqual(self.refused(rule(kms(apiVersion=None))), text)
        twice = rule(f"{kms(apiVersion='v1')}, {kms(apiVersion='v1')}")
        self.assertEqual(self.refused(twice), text)
        self.assertIn("duplicate KMS provider name foo", self.problem(twice, reload=True))

    def test_decoding(self) -> None:
        """A file of another kind, with unknown fields or invalid syntax is rejected, and not quoted."""
        start = 'error while parsing file: error decoding encryption provider configuration file "/etc/enc.yaml": '
        for content, problem in (
            (f"kind: EncryptionConfiguration\nhunter2: {SECRET}", "Object 'apiVersion' is missing in 'REDACTED'"),
            (
                "kind: EncryptionConfigurations\napiVersion: apiserver.config.k8s.io/v1",
                'no kind "EncryptionConfigurations" is registered for version "apiserver.config.k8s.io/v1" in scheme '
                '"pkg/runtime/scheme.go:110"',
            ),
            (
                f"{HEAD}resources:\n{rule(kms(pandas='x'))}",
                'strict decoding error: unknown field "resources[0].providers[0].kms.pandas"',
            ),
            (f"{HEAD}resources:\n{rule(kms(timeout='soon'))}", 'time: invalid duration "soon"'),
            (
                f"{HEAD}resources:\n{rule(kms(cachesize='x'))}",
                "json: cannot unmarshal string into Go struct field KMSConfiguration.resources.providers.kms.cachesize "
                "of type int32",
            ),
        ):
            error = self.assertRaises(
                ConfigurationError, load_configuration, content.encode(), "/etc/enc.yaml", reload=False
            )
            self.assertEqual(str(error), start + problem)
        error = self.assertRaises(ConfigurationError, load_configuration, b"", "/etc/enc.yaml", reload=False)
        self.assertTrue(str(error).endswith('encryption provider configuration file "/etc/enc.yaml" is empty'))

    @given(st.binary(max_size=200))
    def test_garbage(self, content: bytes) -> None:
        """Any bytes are parsed or rejected."""
        with contextlib.suppress(ConfigurationError):
            load_configuration(HEAD.encode() + content, "x", reload=True)
