"""Manifests for the tests of kubectl."""

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: nginx
        image: nginx:1.27
        ports: [{containerPort: 80}]
"""

CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  colour: green
  size: small
"""

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: worker
  labels: {app: worker}
spec:
  containers:
  - name: main
    image: busybox:1.36
"""
