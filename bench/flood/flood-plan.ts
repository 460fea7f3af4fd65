export interface FloodTarget {
  key: string;
  endpointId: string;
}

/** What each of the flooding processes does. */
export type FloodPart = 'background' | 'jobs' | 'uploads';

/** What the flooding programs do, as the benchmark configures it. */
export interface FloodPlan {
  url: string;
  /** The accounts that hold connections, slow bodies and streams, in turn. */
  background: FloodTarget[];
  connections: number;
  slowBodies: number;
  streams: number;
  /** The account that sends jobs and uploads without end. */
  flooder: FloodTarget & { volume: string; s3: { accessId: string; secret: string } };
}
