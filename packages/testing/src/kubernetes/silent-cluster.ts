/** A kubeconfig of a cluster that does not answer: nobody listens on this port. */
export const SILENT_CLUSTER = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'silent',
  contexts: [{ name: 'silent', context: { cluster: 'silent', user: 'nobody' } }],
  clusters: [{ name: 'silent', cluster: { server: 'https://127.0.0.1:9' } }],
  users: [{ name: 'nobody', user: { token: 'none' } }],
});
