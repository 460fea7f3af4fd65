/** The request that every part sends. */
export const JOB_BODY = '{"input":{"prompt":"hello"}}';
