const MEGABYTE = 1024 * 1024;

export interface GatewayLimits {
  /** Of a request's body and of a response's, each. */
  bodyBytes: number;
  /** From the moment a worker gets a request until it has answered it whole. An opened WebSocket has no limit. */
  requestMs: number;
  /** How long a request waits for a free worker. */
  waitMs: number;
  /** How long one waits that will have no other worker than its own. */
  strictWaitMs: number;
  /** Requests of one endpoint that may wait at the same time. */
  maxWaiting: number;
  /** How long a worker may take to accept a connection. */
  connectMs: number;
  /** A worker that refused a connection is left alone this long. */
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

/** For pods: bodies of any size, and as long as the hosted service waits for the head of an answer. */
export const POD_GATEWAY_LIMITS: Readonly<GatewayLimits> = {
  ...GATEWAY_LIMITS,
  bodyBytes: Infinity,
  requestMs: 100_000,
};

/** So much of a body that nobody wants is read all the same, so that the answer arrives. */
export const MAX_DISCARDED_BYTES = 64 * MEGABYTE;

/** What a caller is told to wait when there is no worker, in seconds. */
export const RETRY_AFTER_S = 5;

/** As large as what clients may send here. */
export const MAX_RESPONSE_HEAD_BYTES = 128 * 1024;

/** A body that is here whole, and no longer than this, leaves as one with its head. */
export const MAX_COALESCED_BYTES = 16 * 1024;
