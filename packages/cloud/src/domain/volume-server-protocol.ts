/** Where a volume server listens. */
export const VOLUME_SERVER_PORT = 8485;
