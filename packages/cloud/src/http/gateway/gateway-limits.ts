const MEGABYTE = 1024 * 1024;

export interface GatewayLimits {
  /** Of a request body, and of a response body. */
  bodyBytes: number;
  /** From the start of a request at its worker to the end of the response. An open WebSocket has no limit. */
  requestMs: number;
  /** How long a request waits for a free worker. */
  waitMs: number;
  /** How long a request waits that accepts only one worker. */
  strictWaitMs: number;
  /** Requests of one endpoint that may wait at the same time. */
  maxWaiting: number;
  /** How long a worker may take to accept a connection. */
  connectMs: number;
  /** A worker that refused a connection is skipped for this long. */
  unreachableMs: number;
}

export const GATEWAY_LIMITS: Readonly<GatewayLimits> = {
  bodyBytes: 30 * MEGABYTE,
  requestMs: 330_000,
  waitMs: 120_000,
  strictWaitMs: 300_000,
  maxWaiting: 1000,
  connectMs: 5_000,
  unreachableMs: 1_000,
};

/** For pods: bodies of any size, and the time that the hosted service waits for the head of a response. */
export const POD_GATEWAY_LIMITS: Readonly<GatewayLimits> = {
  ...GATEWAY_LIMITS,
  bodyBytes: Infinity,
  requestMs: 100_000,
};

/** The Retry-After that clients get if there is no worker. */
export const RETRY_AFTER_S = 5;

/** Of a worker's response. */
export const MAX_RESPONSE_HEAD_BYTES = 128 * 1024;

/** A body that has arrived whole and is at most this long is sent in one write with its head. */
export const MAX_COALESCED_BYTES = 16 * 1024;
