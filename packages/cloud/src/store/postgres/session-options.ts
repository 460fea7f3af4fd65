/**
 * Settings of every session, so that the database ends those of a server that froze or was cut off: what is
 * sent and not confirmed, what waits inside a transaction, and what says nothing at all. Connections of a
 * living server are closed by itself long before, when nobody needs them.
 */
export const LISTENER_OPTIONS =
  '-c tcp_user_timeout=10000 -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3';
/** As PostgreSQL shows it. */
export const IDLE_SESSION_TIMEOUT = '1min';
export const SESSION_OPTIONS =
  `${LISTENER_OPTIONS} -c idle_session_timeout=${IDLE_SESSION_TIMEOUT} -c ` +
  'idle_in_transaction_session_timeout=30000';
