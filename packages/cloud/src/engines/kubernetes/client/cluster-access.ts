/** Where a cluster's API server is, and how this server signs in. */
export interface ClusterAccess {
  readonly server: string;
  /** The namespace of the kubeconfig's context or of the service account, where there is one. */
  readonly namespace: string | undefined;
  /** Current credentials. They are read again when they expire or are refused. */
  credentials(): Promise<ClusterCredentials>;
  /** The API server refused the credentials. */
  forgetCredentials(): void;
}

export interface ClusterCredentials {
  /** The value of the Authorization header; undefined with a client certificate. */
  authorization?: string | undefined;
  tls: {
    ca?: string | Buffer | undefined;
    cert?: string | Buffer | undefined;
    key?: string | Buffer | undefined;
    servername?: string | undefined;
    rejectUnauthorized?: boolean;
  };
}
