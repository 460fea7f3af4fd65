import type { Endpoint } from '../../api/types.ts';

/** What every tab of an endpoint is given. */
export interface TabProps {
  endpoint: Endpoint;
}
