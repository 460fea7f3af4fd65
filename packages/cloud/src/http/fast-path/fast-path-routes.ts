import { parseEndpointHost } from '../gateway/gateway-url.ts';
import { endpointRoute } from '../endpoint-router.ts';
import type { EndpointRouterDeps } from '../endpoint-router.ts';
import { parseJobUrl } from '../jobs/job-url.ts';
import type { JobUrl } from '../jobs/job-url.ts';
import type { FastPathHandler } from './fast-path-connection.ts';
import type { FastPathRequest, FastPathResponse } from './fast-path-exchange.ts';
import type { FastPathHead } from './fast-path-head.ts';

/** Small requests with small responses. Streams go through Node's HTTP. */
const FAST_PATH_OPERATIONS = new Set([
  'run',
  'runsync',
  'status',
  'cancel',
  'job-take',
  'job-take-batch',
  'job-done',
  'job-stream',
  'job-stop',
  'ping',
]);

/** With its pattern, for logs and metrics. */
type ObservedUrl = JobUrl & { route: string };

export interface FastPathRoutesDeps
  extends Pick<EndpointRouterDeps, 'jobs' | 'workers' | 'pods' | 'loadBalancing' | 'requestObserver'> {
  isClosing(): boolean;
}

/** The job API and the worker protocol of queue endpoints, as far as the fast path serves them. */
export class FastPathRoutes implements FastPathHandler {
  readonly #deps: FastPathRoutesDeps;
  /**
   * Null where the fast path does not serve the address. A connection repeats few heads, and each is parsed
   * once.
   */
  readonly #urls = new WeakMap<FastPathHead, ObservedUrl | null>();

  constructor(deps: FastPathRoutesDeps) {
    this.#deps = deps;
  }

  get closing(): boolean {
    return this.#deps.isClosing();
  }

  accepts(head: FastPathHead): boolean | Promise<boolean> {
    const { loadBalancing } = this.#deps;
    const url = this.#urlOf(head);
    if (url === null || loadBalancing === undefined) return url !== null;
    const cached = loadBalancing.endpoints.findCached(url.endpointId);
    if (cached !== undefined) return cached.type === 'QUEUE';
    return loadBalancing.endpoints.find(url.endpointId).then((found) => found?.type !== 'LOAD_BALANCER');
  }

  serveFastPath(request: FastPathRequest, response: FastPathResponse): void {
    const { jobs, workers, requestObserver } = this.#deps;
    const url = this.#urlOf(request.head) as ObservedUrl;
    requestObserver?.observe(request, response, url.route);
    if (jobs.handles(url.operation)) void jobs.serve(request, response, url);
    else void workers.serve(request, response, url);
  }

  #urlOf(head: FastPathHead): ObservedUrl | null {
    let url = this.#urls.get(head);
    if (url === undefined) {
      const parsed = this.#parse(head);
      url = parsed === undefined ? null : { ...parsed, route: endpointRoute(parsed) };
      this.#urls.set(head, url);
    }
    return url;
  }

  /** A path under an endpoint's or a pod's own host name belongs to its worker or pod. */
  #parse(head: FastPathHead): JobUrl | undefined {
    const { pods, loadBalancing } = this.#deps;
    const url = parseJobUrl(head.url);
    if (url === undefined || !FAST_PATH_OPERATIONS.has(url.operation) || pods?.match(head) !== undefined)
      return undefined;
    if (loadBalancing === undefined) return url;
    return parseEndpointHost(head.headers.host, head.url, loadBalancing.domain) !== undefined ||
      url.endpointId.includes('%')
      ? undefined
      : url;
  }
}
