import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyBaseLogger } from 'fastify';
import type { Caller } from '../../domain/caller.ts';
import { MAX_DISCARDED_BYTES } from '../../domain/limits.ts';
import type { VolumeContents } from '../../resources/volumes/volume-contents.ts';
import type { Volumes } from '../../resources/volumes/volumes.ts';
import type { NetworkVolume } from '../../domain/records.ts';
import { BerthError } from '../../support/errors.ts';
import { toBerthError } from '../http.errors.ts';
import { discardBody } from '../body-turns.ts';
import { allowLongUpload } from '../long-uploads.ts';
import { admitRequest } from '../connection-limit.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../request-id.ts';
import type { RequestObserver } from '../request-observer.ts';
import { endWhenRevoked } from '../revocable-response.ts';
import { isS3Url, parseS3Url } from './s3-url.ts';
import type { OpenAccesses } from '../../auth/open-access.ts';
import { S3AuthError, S3Authenticator } from '../../auth/s3-authenticator.ts';
import type { S3AuthenticatorDeps } from '../../auth/s3-authenticator.ts';
import type { S3BucketExchange, S3Exchange } from './s3-exchange.ts';
import { sendS3Error, errorDocument, toS3Error, diskErrorToS3Error, S3Error } from './s3.errors.ts';

export interface S3RoutesDeps extends S3AuthenticatorDeps {
  volumes: Volumes;
  contents: VolumeContents;
  openAccesses: OpenAccesses;
  log: FastifyBaseLogger;
  requestObserver?: RequestObserver;
}

/**
 * Network volumes as S3 buckets, below `/s3`. It bypasses Fastify: bodies have no size limit and are
 * streamed.
 */
export class S3Routes {
  readonly #deps: S3RoutesDeps;
  readonly #authenticator: S3Authenticator;
  #closing = false;

  constructor(deps: S3RoutesDeps) {
    this.#deps = deps;
    this.#authenticator = new S3Authenticator(deps);
  }

  /** Requests that are not for S3 go to `others`. */
  serve(request: IncomingMessage, response: ServerResponse, others: () => void): void {
    if (!isS3Url(request.url ?? '')) return others();
    // An open connection would keep the server from stopping.
    if (this.#closing) response.shouldKeepAlive = false;
    void this.#serve(request, response);
  }

  /** Called when the server stops. */
  close(): void {
    this.#closing = true;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const requestId = requestIdOf(request);
    this.#deps.requestObserver?.observeForwarded(request, response, '/s3', 's3');
    response.setHeader('x-amz-request-id', requestId);
    response.setHeader(REQUEST_ID_HEADER, requestId);
    request.on('error', () => undefined);
    if (request.method === 'PUT' || request.method === 'POST') allowLongUpload(request.socket);
    try {
      await this.#handle(request, response, requestId);
    } catch (error) {
      if (isClientGone(request, response)) return void response.destroy();
      sendS3Error(response, this.#toS3Error(error, requestId), {
        resource: (request.url ?? '').split('?')[0] ?? '',
        requestId,
        withBody: request.method !== 'HEAD',
      });
    } finally {
      discardBody(request, MAX_DISCARDED_BYTES);
    }
  }

  async #handle(request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> {
    const url = parseS3Url(request.url ?? '');
    // Loaded with the first request, to start faster.
    const [{ findS3Operation }, { listBuckets }] = await Promise.all([
      import('./s3-operations.ts'),
      import('./s3-buckets.ts'),
    ]);
    const { mode, run } = findS3Operation(request, url);
    const auth = await this.#authenticator.authorize(
      { method: request.method ?? '', path: url.path, query: url.query.pairs, headers: request.headers },
      mode,
      requestId,
    );
    admitRequest(request.socket, auth.caller.accountId);
    endWhenRevoked(this.#deps.openAccesses, {
      response,
      ...auth.access,
      sendError: () => {
        response.destroy();
        request.destroy();
      },
    });
    const exchange: S3Exchange = { request, response, url, auth };
    if (url.bucket === '') return listBuckets(exchange, await this.#deps.volumes.list(auth.caller));
    const { contents } = this.#deps;
    const volume = await this.#volume(auth.caller, url.bucket);
    checkRegion(auth.signing?.scope.region, volume);
    const path = url.path;
    const bucketExchange: S3BucketExchange = {
      ...exchange,
      volume,
      contents,
      objects: contents.objects(volume),
      uploads: contents.uploads(volume),
      otherVolume: (id) => this.#volume(auth.caller, id),
      toS3Error: (error) => this.#toS3Error(error, requestId),
      errorDocument: (error) => errorDocument(this.#toS3Error(error, requestId), path, requestId),
    };
    await run(bucketExchange);
  }

  async #volume(caller: Caller, id: string): Promise<NetworkVolume> {
    try {
      return await this.#deps.volumes.get(caller, id);
    } catch (error) {
      if (error instanceof BerthError && error.code === 'not-found')
        throw new S3Error(
          'NoSuchBucket',
          'The specified bucket does not exist: there is no network volume with this id',
          { BucketName: id.slice(0, 80) },
        );
      throw error;
    }
  }

  #toS3Error(error: unknown, requestId: string): S3Error {
    if (error instanceof S3Error) return error;
    if (error instanceof S3AuthError) return new S3Error(error.code, error.message, error.fields);
    return diskErrorToS3Error(error) ?? toS3Error(toBerthError(error, this.#deps.log, requestId));
  }
}

/** A bucket is in one region: its data center. */
function checkRegion(region: string | undefined, { dataCenterId }: NetworkVolume): void {
  if (region === undefined || region.toLowerCase() === dataCenterId.toLowerCase()) return;
  throw new S3Error(
    'AuthorizationHeaderMalformed',
    `the region '${region.slice(0, 64)}' is wrong; expecting '${dataCenterId}'`,
    { Region: dataCenterId },
  );
}

/** The client closed the connection: there is nobody to answer, and this is not an error. */
function isClientGone(request: IncomingMessage, response: ServerResponse): boolean {
  return response.destroyed || (request.destroyed && !request.complete);
}
