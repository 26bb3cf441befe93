{{- define "kubetwist.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kubetwist.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "kubetwist.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "kubetwist.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "kubetwist.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kubetwist.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kubetwist.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "kubetwist.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "kubetwist.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "kubetwist.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "kubetwist.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{/* The probe of a path: a dictionary with path and settings. */}}
{{- define "kubetwist.probe" -}}
httpGet:
  path: {{ .path }}
  port: https
  scheme: HTTPS
{{ toYaml .settings }}
{{- end }}

{{/* The template of the pods of both kinds of workloads. */}}
{{- define "kubetwist.pod" -}}
{{- $etcd := eq .Values.storage.type "etcd" -}}
metadata:
  labels:
    {{- include "kubetwist.selectorLabels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "kubetwist.serviceAccountName" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if and $etcd .Values.topologySpread.enabled }}
  topologySpreadConstraints:
    {{- range .Values.topologySpread.topologyKeys }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "kubetwist.selectorLabels" $ | nindent 10 }}
    {{- end }}
  {{- end }}
  {{- if .Values.keys.existingSecret }}
  initContainers:
    # All servers need the same keys. Each adds the certificates for its own addresses to its copy.
    - name: keys
      image: {{ include "kubetwist.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      command: [/bin/sh, -euc]
      args:
        - |
          umask 077
          mkdir -p /var/lib/kubetwist/data/pki
          cp /keys/kubetwist.json /var/lib/kubetwist/data/
          cp /keys/*.crt /keys/*.key /keys/*.pub /var/lib/kubetwist/data/pki/
      resources:
        requests:
          cpu: 10m
          memory: 16Mi
        limits:
          memory: 64Mi
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        - name: data
          mountPath: /var/lib/kubetwist
        - name: keys
          mountPath: /keys
          readOnly: true
  {{- end }}
  containers:
    - name: kubetwist
      image: {{ include "kubetwist.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - --data-dir=/var/lib/kubetwist/data
        - --bind-address=0.0.0.0
        - --secure-port={{ .Values.containerPort }}
        - --advertise-address=$(POD_IP)
        - --external-hostname={{ include "kubetwist.fullname" . }}.$(POD_NAMESPACE).svc
        - --shutdown-delay-duration={{ .Values.shutdownDelaySeconds }}s
        {{- if $etcd }}
        - --etcd-servers={{ join "," .Values.storage.etcd.servers }}
        - --etcd-prefix={{ .Values.storage.etcd.prefix }}
        {{- if .Values.storage.etcd.tlsSecret }}
        - --etcd-cafile=/etcd-client/ca.crt
        - --etcd-certfile=/etcd-client/tls.crt
        - --etcd-keyfile=/etcd-client/tls.key
        {{- end }}
        {{- end }}
        {{- if .Values.tls.servingSecret }}
        - --tls-cert-file=/serving/tls.crt
        - --tls-private-key-file=/serving/tls.key
        {{- end }}
        {{- range $name, $value := .Values.flags }}
        - {{ printf "--%s=%v" $name $value | quote }}
        {{- end }}
      env:
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        - name: POD_NAMESPACE
          valueFrom:
            fieldRef:
              fieldPath: metadata.namespace
      ports:
        - name: https
          containerPort: {{ .Values.containerPort }}
      startupProbe:
        {{- include "kubetwist.probe" (dict "path" "/livez" "settings" .Values.probes.startup) | nindent 8 }}
      livenessProbe:
        {{- include "kubetwist.probe" (dict "path" "/livez" "settings" .Values.probes.liveness) | nindent 8 }}
      readinessProbe:
        {{- include "kubetwist.probe" (dict "path" "/readyz" "settings" .Values.probes.readiness) | nindent 8 }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        - name: data
          mountPath: /var/lib/kubetwist
        - name: tmp
          mountPath: /tmp
        {{- if and $etcd .Values.storage.etcd.tlsSecret }}
        - name: etcd-client
          mountPath: /etcd-client
          readOnly: true
        {{- end }}
        {{- if .Values.tls.servingSecret }}
        - name: serving
          mountPath: /serving
          readOnly: true
        {{- end }}
  volumes:
    - name: tmp
      emptyDir:
        sizeLimit: 256Mi
    {{- if $etcd }}
    - name: data
      emptyDir:
        medium: Memory
        sizeLimit: 16Mi
    {{- end }}
    {{- with .Values.keys.existingSecret }}
    - name: keys
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- if $etcd }}
    {{- with .Values.storage.etcd.tlsSecret }}
    - name: etcd-client
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- end }}
    {{- with .Values.tls.servingSecret }}
    - name: serving
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
{{- end }}
