{{- define "berth.name" -}}
{{- if contains "berth" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-berth" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end -}}

{{- define "berth.selector" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "berth.labels" -}}
{{ include "berth.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "berth.serviceAccount" -}}
{{- if .Values.serviceAccount.name }}{{ .Values.serviceAccount.name }}{{ else if .Values.serviceAccount.create }}{{ include "berth.name" . }}{{ else }}default{{ end -}}
{{- end -}}

{{- define "berth.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "berth.workNamespace" -}}
{{ .Values.kubernetes.namespace | default .Release.Namespace }}
{{- end -}}

{{- define "berth.keysSecret" -}}
{{ .Values.keys.existingSecret | default (printf "%s-keys" (include "berth.name" .)) }}
{{- end -}}

{{- define "berth.usesPostgres" -}}
{{- if or .Values.database.url .Values.database.existingSecret }}yes{{ end -}}
{{- end -}}

{{- define "berth.databaseSecret" -}}
{{ .Values.database.existingSecret | default (printf "%s-database" (include "berth.name" .)) }}
{{- end -}}

{{- define "berth.serviceUrl" -}}
http://{{ include "berth.name" . }}.{{ .Release.Namespace }}.svc:{{ .Values.service.port }}
{{- end -}}

{{- /* Without a key, Prometheus reads /metrics at a port of its own. */ -}}
{{- define "berth.metricsListener" -}}
{{- if and .Values.serviceMonitor.enabled (not .Values.serviceMonitor.keySecret) }}yes{{ end -}}
{{- end -}}

{{- define "berth.publicUrl" -}}
{{- if .Values.publicUrl }}{{ .Values.publicUrl }}
{{- else if and .Values.ingress.enabled .Values.ingress.hosts -}}
{{ if or .Values.ingress.tls .Values.tls.enabled }}https{{ else }}http{{ end }}://{{ first .Values.ingress.hosts }}
{{- end -}}
{{- end -}}

{{- /* The settings: those of the chart, under those that are given. */ -}}
{{- define "berth.config" -}}
{{- $settings := dict "workerUrl" (.Values.workerUrl | default (include "berth.serviceUrl" .)) -}}
{{- with include "berth.publicUrl" . }}{{ $_ := set $settings "publicUrl" . }}{{ end -}}
{{- if .Values.kubernetes.enabled -}}
{{- $dataCenter := dict "id" .Values.kubernetes.dataCenter "engine" "kubernetes" "namespace" (include "berth.workNamespace" .) "berthImage" (include "berth.image" .) -}}
{{- $_ := set $settings "dataCenters" (list (mustMergeOverwrite $dataCenter (deepCopy .Values.kubernetes.settings))) -}}
{{- $_ := set $settings "runner" (dict "image" (include "berth.image" .)) -}}
{{- end -}}
{{- if include "berth.metricsListener" . -}}
{{- $_ := set $settings "metrics" (dict "listen" "0.0.0.0:9464") -}}
{{- end -}}
{{- if .Values.tls.enabled -}}
{{- $_ := set $settings "tls" (dict "certificate" "/etc/berth/tls/tls.crt" "key" "/etc/berth/tls/tls.key" "plainFrom" .Values.tls.plainFrom) -}}
{{- end -}}
{{- toYaml (mustMergeOverwrite $settings (deepCopy .Values.config)) -}}
{{- end -}}
