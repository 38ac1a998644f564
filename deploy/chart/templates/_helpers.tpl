{{- define "paas.labels" -}}
app.kubernetes.io/name: paas
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "paas.selector" -}}
app.kubernetes.io/name: paas
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "paas.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- /* Read from the Secret of the operator, or from that of CloudNativePG. */ -}}
{{- define "paas.databaseUrl" -}}
- name: PAAS_DATABASE_URL
  valueFrom:
    secretKeyRef:
      {{- if .Values.cloudNativePg.create }}
      name: {{ .Release.Name }}-database-app
      key: fqdn-uri
      {{- else }}
      name: {{ .Values.existingSecret }}
      key: database-url
      {{- end }}
{{- end }}

{{- define "paas.environment" -}}
- {name: PAAS_PLATFORM, value: kubernetes}
- {name: PAAS_DATA_DIR, value: /data}
- {name: PAAS_KUBERNETES_NAMESPACE, value: {{ .Release.Namespace }}}
- {name: PAAS_KUBERNETES_SERVICE_ACCOUNT, value: {{ .Release.Name }}-worker}
- {name: PAAS_KUBERNETES_SECRETS_ROLE, value: {{ .Release.Name }}-tenant-secrets}
- {name: PAAS_KUBERNETES_GATEWAY, value: {{ .Values.gateway.namespace }}/{{ .Values.gateway.name }}}
- {name: PAAS_KUBERNETES_ISSUER, value: {{ .Values.issuer.kind }}/{{ .Values.issuer.name }}}
- {name: PAAS_KUBERNETES_WILDCARD, value: {{ .Values.issuer.wildcard | quote }}}
- {name: PAAS_KUBERNETES_REPOSITORY, value: {{ .Values.registry.repository | quote }}}
- {name: PAAS_KUBERNETES_REGISTRY_SECRET, value: {{ .Values.registry.secret | quote }}}
- {name: PAAS_KUBERNETES_PULL_SECRET, value: {{ .Values.registry.pullSecret | quote }}}
- {name: PAAS_KUBERNETES_DOCKERFILES, value: {{ .Values.builds.dockerfiles | quote }}}
- {name: PAAS_LOKI_URL, value: {{ .Values.lokiUrl | quote }}}
- {name: PAAS_PROMETHEUS_URL, value: {{ .Values.prometheusUrl | quote }}}
# The addresses that users are shown: the ports of the Gateway and of the Service of SSH.
- {name: PAAS_HTTP_PORT, value: '80'}
- {name: PAAS_HTTPS_PORT, value: '443'}
- {name: PAAS_SSH_PORT, value: {{ .Values.sshd.service.port | quote }}}
- {name: PAAS_BASE_URL, value: {{ .Values.baseUrl | quote }}}
- {name: PAAS_APPS_DOMAIN, value: {{ .Values.appsDomain | quote }}}
- {name: PAAS_INTERNAL_URL, value: 'http://{{ .Release.Name }}-worker.{{ .Release.Namespace }}.svc.cluster.local:9000'}
{{ include "paas.databaseUrl" . }}
{{- range $name, $key := dict "PAAS_SECRET_KEY" "secret-key" "PAAS_OBJECT_STORE_URL" "object-store-url" "PAAS_OBJECT_STORE_ACCESS_KEY_ID" "object-store-access-key-id" "PAAS_OBJECT_STORE_SECRET_ACCESS_KEY" "object-store-secret-access-key" }}
- {name: {{ $name }}, valueFrom: {secretKeyRef: {name: {{ $.Values.existingSecret }}, key: {{ $key }}}}}
{{- end }}
- {name: PAAS_WEBHOOK_SECRET, valueFrom: {secretKeyRef: {name: {{ .Values.existingSecret }}, key: webhook-secret, optional: true}}}
{{- range $name, $value := .Values.settings }}
- {name: {{ $name }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end }}

{{- /* Of every pod of the platform: no root, no rights, nothing to write but /data and /tmp, not two of a kind on one node. */ -}}
{{- define "paas.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "paas.selector" . | nindent 14 }}
{{- end }}

{{- define "paas.container" -}}
image: {{ include "paas.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}
