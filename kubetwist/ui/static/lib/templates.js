// Texts to begin a new object with.

import { dump } from "../vendor/js-yaml/js-yaml.mjs";
import { apiVersionOf } from "./resources.js";

/** @typedef {import("./types.js").Resource} Resource */
/** @typedef {import("./openapi.js").Schemas} Schemas */
/** @typedef {import("./openapi.js").Field} Field */
/** @typedef {{ title: string, text: string }} Template */

const LABELS = "    app: example\n";
const CONTAINER = (/** @type {string} */ indent) => `${indent}containers:
${indent}- name: example
${indent}  image: nginx:1.27
`;
const POD = (/** @type {string} */ more = "") => `  selector:
    matchLabels:
      app: example
  template:
    metadata:
      labels:
        app: example
    spec:
${CONTAINER("      ")}${more}`;
const FULL = `        ports:
        - name: http
          containerPort: 80
        resources:
          requests:
            cpu: 100m
            memory: 64Mi
          limits:
            memory: 128Mi
        readinessProbe:
          httpGet:
            path: /
            port: http
        livenessProbe:
          httpGet:
            path: /
            port: http
        securityContext:
          allowPrivilegeEscalation: false
          runAsNonRoot: true
`;
const JOB = (/** @type {string} */ indent) => `${indent}template:
${indent}  spec:
${indent}    restartPolicy: Never
${indent}    containers:
${indent}    - name: example
${indent}      image: busybox:1.37
${indent}      command: [sh, -c, "echo done"]
`;
const RULES = `rules:
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
`;
const BINDING = (/** @type {string} */ kind) => `subjects:
- kind: User
  apiGroup: rbac.authorization.k8s.io
  name: jane
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ${kind}
  name: example
`;

/**
 * What follows the metadata, by group and resource: title and text. A text that begins with "  labels" belongs to the
 * metadata.
 *
 * @type {Record<string, [string, string][]>}
 */
const TEMPLATES = {
  "/namespaces": [["Namespace", ""], ["Namespace with pod security", "  labels:\n    pod-security.kubernetes.io/enforce: restricted\n"]],
  "/pods": [["Pod", `spec:\n${CONTAINER("  ")}`], ["Pod that ends", `spec:\n  restartPolicy: Never\n${CONTAINER("  ")}    command: [sh, -c, "echo done"]\n`]],
  "/services": [
    ["Service", "spec:\n  selector:\n    app: example\n  ports:\n  - name: http\n    port: 80\n    targetPort: 80\n"],
    ["Headless service", "spec:\n  clusterIP: None\n  selector:\n    app: example\n  ports:\n  - name: http\n    port: 80\n"],
    ["Service with a node port", "spec:\n  type: NodePort\n  selector:\n    app: example\n  ports:\n  - name: http\n    port: 80\n    targetPort: 80\n"],
    ["External name", "spec:\n  type: ExternalName\n  externalName: example.com\n"],
  ],
  "/configmaps": [["Keys and values", "data:\n  key: value\n"], ["A file", "data:\n  example.conf: |\n    first line\n    second line\n"]],
  "/secrets": [
    ["Keys and values", "type: Opaque\nstringData:\n  key: value\n"],
    ["User name and password", "type: kubernetes.io/basic-auth\nstringData:\n  username: user\n  password: password\n"],
    ["Certificate and key", "type: kubernetes.io/tls\nstringData:\n  tls.crt: |\n    -----BEGIN CERTIFICATE-----\n  tls.key: |\n    -----BEGIN PRIVATE KEY-----\n"],
  ],
  "/serviceaccounts": [["Service account", "automountServiceAccountToken: false\n"]],
  "/persistentvolumeclaims": [["Claim", "spec:\n  accessModes: [ReadWriteOnce]\n  resources:\n    requests:\n      storage: 1Gi\n"]],
  "/persistentvolumes": [["Volume on NFS", "spec:\n  capacity:\n    storage: 1Gi\n  accessModes: [ReadWriteMany]\n  nfs:\n    server: nfs.example.com\n    path: /exports\n"]],
  "/resourcequotas": [["Quota", "spec:\n  hard:\n    pods: \"20\"\n    requests.cpu: \"4\"\n    requests.memory: 8Gi\n"]],
  "/limitranges": [["Defaults of containers", "spec:\n  limits:\n  - type: Container\n    default:\n      memory: 256Mi\n    defaultRequest:\n      cpu: 100m\n      memory: 64Mi\n"]],
  "apps/deployments": [
    ["Deployment", `  labels:\n${LABELS}spec:\n  replicas: 1\n${POD()}`],
    ["With probes and limits", `  labels:\n${LABELS}spec:\n  replicas: 2\n${POD(FULL)}`],
    ["With a ConfigMap as a volume", `  labels:\n${LABELS}spec:\n  replicas: 1\n${POD("        volumeMounts:\n        - name: config\n          mountPath: /etc/example\n      volumes:\n      - name: config\n        configMap:\n          name: example\n")}`],
  ],
  "apps/statefulsets": [["With a volume for each pod", `  labels:\n${LABELS}spec:\n  serviceName: example\n  replicas: 1\n${POD("        volumeMounts:\n        - name: data\n          mountPath: /data\n")}  volumeClaimTemplates:\n  - metadata:\n      name: data\n    spec:\n      accessModes: [ReadWriteOnce]\n      resources:\n        requests:\n          storage: 1Gi\n`]],
  "apps/daemonsets": [["DaemonSet", `  labels:\n${LABELS}spec:\n${POD()}`]],
  "batch/jobs": [["Job", `spec:\n  backoffLimit: 2\n  ttlSecondsAfterFinished: 3600\n${JOB("  ")}`], ["Several pods in parallel", `spec:\n  completions: 4\n  parallelism: 2\n  completionMode: Indexed\n${JOB("  ")}`]],
  "batch/cronjobs": [["CronJob", `spec:\n  schedule: "0 3 * * *"\n  concurrencyPolicy: Forbid\n  jobTemplate:\n    spec:\n${JOB("      ")}`]],
  "networking.k8s.io/ingresses": [
    ["One host", "spec:\n  rules:\n  - host: example.com\n    http:\n      paths:\n      - path: /\n        pathType: Prefix\n        backend:\n          service:\n            name: example\n            port:\n              name: http\n"],
    ["One host with TLS", "spec:\n  tls:\n  - hosts: [example.com]\n    secretName: example-tls\n  rules:\n  - host: example.com\n    http:\n      paths:\n      - path: /\n        pathType: Prefix\n        backend:\n          service:\n            name: example\n            port:\n              name: http\n"],
  ],
  "networking.k8s.io/networkpolicies": [
    ["Deny all incoming connections", "spec:\n  podSelector: {}\n  policyTypes: [Ingress]\n"],
    ["Allow from pods of an app", "spec:\n  podSelector:\n    matchLabels:\n      app: example\n  policyTypes: [Ingress]\n  ingress:\n  - from:\n    - podSelector:\n        matchLabels:\n          app: client\n    ports:\n    - protocol: TCP\n      port: 80\n"],
  ],
  "autoscaling/horizontalpodautoscalers": [["By processor use", "spec:\n  scaleTargetRef:\n    apiVersion: apps/v1\n    kind: Deployment\n    name: example\n  minReplicas: 1\n  maxReplicas: 5\n  metrics:\n  - type: Resource\n    resource:\n      name: cpu\n      target:\n        type: Utilization\n        averageUtilization: 80\n"]],
  "policy/poddisruptionbudgets": [["At most one is evicted at a time", "spec:\n  maxUnavailable: 1\n  selector:\n    matchLabels:\n      app: example\n"]],
  "rbac.authorization.k8s.io/roles": [["Read pods", RULES]],
  "rbac.authorization.k8s.io/clusterroles": [["Read pods", RULES], ["Aggregated", "aggregationRule:\n  clusterRoleSelectors:\n  - matchLabels:\n      example.com/aggregate: \"true\"\nrules: []\n"]],
  "rbac.authorization.k8s.io/rolebindings": [["Role to a user", BINDING("Role")], ["Cluster role to a user, in this namespace", BINDING("ClusterRole")]],
  "rbac.authorization.k8s.io/clusterrolebindings": [["Cluster role to a user", BINDING("ClusterRole")]],
  "scheduling.k8s.io/priorityclasses": [["Priority class", "value: 1000\npreemptionPolicy: PreemptLowerPriority\n"]],
  "storage.k8s.io/storageclasses": [["Storage class", "provisioner: example.com/provisioner\nreclaimPolicy: Delete\nvolumeBindingMode: WaitForFirstConsumer\n"]],
  "apiextensions.k8s.io/customresourcedefinitions": [["Definition with a schema", `spec:
  group: example.com
  scope: Namespaced
  names:
    plural: examples
    singular: example
    kind: Example
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size:
                type: integer
                minimum: 1
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
    subresources:
      status: {}
`]],
};

/** The names that the templates need. @type {Record<string, string>} */
const NAMES = { "apiextensions.k8s.io/customresourcedefinitions": "examples.example.com" };

/** @param {Resource} resource @param {string} namespace @param {string} name */
const head = (resource, namespace, name) => `apiVersion: ${apiVersionOf(resource)}\nkind: ${resource.kind}\nmetadata:\n  name: ${name}\n${resource.namespaced ? `  namespace: ${namespace}\n` : ""}`;

/**
 * Return the templates of a resource.
 *
 * @param {Resource} resource
 * @param {string} namespace
 * @returns {Template[]}
 */
export function templatesOf(resource, namespace) {
  const key = `${resource.group}/${resource.resource}`;
  return (Object.hasOwn(TEMPLATES, key) ? TEMPLATES[key] : []).map(([title, rest]) => ({ title, text: head(resource, namespace, NAMES[key] ?? "example") + rest }));
}

// Required fields beyond this depth are left out; schemas may be recursive.
const MAX_DEPTH = 8;

/** Return a value with the required fields. @param {Schemas} schemas @param {Field} field @param {number} depth @returns {any} */
function minimal(schemas, field, depth) {
  const { raw, values, type } = field;
  if (raw.default !== undefined) return raw.default;
  if (values.length) return values[0];
  if (type === "integer" || type === "number") return raw.minimum ?? 0;
  if (type === "boolean") return false;
  if (type === "array") return field.items && depth < MAX_DEPTH && (raw.minItems > 0 || schemas.field(field.items).required.length) ? [minimal(schemas, schemas.field(field.items), depth + 1)] : [];
  if (type === "object") {
    /** @type {Record<string, any>} */
    const made = {};
    for (const name of depth < MAX_DEPTH ? field.required : []) {
      const member = schemas.member(field, name);
      if (member && member.raw.default === undefined) made[name] = minimal(schemas, member, depth + 1);
    }
    return made;
  }
  return "";
}

/**
 * Return an object with the required fields of its kind.
 *
 * @param {Resource} resource
 * @param {string} namespace
 * @param {Schemas | null} schemas Of its group and version; null if they are unknown.
 */
export function skeleton(resource, namespace, schemas) {
  const start = head(resource, namespace, "");
  const root = schemas?.ofKind(apiVersionOf(resource), resource.kind);
  if (!schemas || !root) return start;
  /** @type {Record<string, any>} */
  const rest = {};
  for (const name of new Set([...root.required, ...(Object.hasOwn(root.properties, "spec") ? ["spec"] : [])])) {
    const member = ["apiVersion", "kind", "metadata", "status"].includes(name) ? null : schemas.member(root, name);
    const value = member && minimal(schemas, member.type === "object" ? { ...member, raw: { ...member.raw, default: undefined } } : member, 1);
    if (member && (root.required.includes(name) || Object.keys(value).length)) rest[name] = value;
  }
  return Object.keys(rest).length ? start + dump(rest, { noArrayIndent: true, lineWidth: -1 }) : start;
}
