import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyBaseLogger } from 'fastify';
import type { Caller } from '../../resources/caller.ts';
import type { VolumeContents } from '../../resources/volumes/contents.ts';
import type { Volumes } from '../../resources/volumes/volumes.ts';
import type { NetworkVolume } from '../../store/records.ts';
import { BerthError } from '../../support/errors.ts';
import { asBerthError } from '../failures.ts';
import { allowLongUpload } from '../long-uploads.ts';
import { isS3, s3Address } from './address.ts';
import { Door } from './door.ts';
import type { DoorParts } from './door.ts';
import type { BucketExchange, Exchange } from './exchange.ts';
import { fail, failureDocument, failureOf, failureOfDisk, S3Failure } from './failures.ts';

export interface S3FaceParts extends DoorParts {
  volumes: Volumes;
  contents: VolumeContents;
  log: FastifyBaseLogger;
}

/** Of a body that nobody wants any more, this much is read, so that the answer arrives; then the connection ends. */
const MOST_DROPPED = 64 * 1024 ** 2;

/** Network volumes as S3 buckets, below `/s3`. It goes past the web framework: bodies have no limit here, and are never in memory. */
export class S3Face {
  readonly #parts: S3FaceParts;
  readonly #door: Door;
  #closing = false;

  constructor(parts: S3FaceParts) {
    this.#parts = parts;
    this.#door = new Door(parts);
  }

  /** What is not for S3 goes to `others`. */
  serve(request: IncomingMessage, response: ServerResponse, others: () => void): void {
    if (!isS3(request.url ?? '')) return others();
    // A connection that is kept would keep the server from ending.
    if (this.#closing) response.shouldKeepAlive = false;
    void this.#serve(request, response);
  }

  /** The server stops. */
  close(): void {
    this.#closing = true;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const requestId = randomUUID();
    response.setHeader('x-amz-request-id', requestId);
    request.on('error', () => undefined);
    if (request.method === 'PUT' || request.method === 'POST') allowLongUpload(request.socket);
    try {
      await this.#handle(request, response, requestId);
    } catch (error) {
      if (isOver(request, response)) return void response.destroy();
      fail(response, this.#failure(error, requestId), {
        resource: (request.url ?? '').split('?')[0] ?? '',
        requestId,
        withBody: request.method !== 'HEAD',
      });
    } finally {
      dropRest(request);
    }
  }

  async #handle(request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> {
    const address = s3Address(request.url ?? '');
    // Not needed for a start: loaded with the first request.
    const [{ operationFor }, { listBuckets }] = await Promise.all([
      import('./operations.ts'),
      import('./buckets.ts'),
    ]);
    const { need, run } = operationFor(request, address);
    const admitted = await this.#door.admit(request, address, need, requestId);
    const exchange: Exchange = { request, response, address, admitted };
    if (address.bucket === '') return listBuckets(exchange, await this.#parts.volumes.list(admitted.caller));
    const { contents } = this.#parts;
    const volume = await this.#volume(admitted.caller, address.bucket);
    checkRegion(admitted.signed?.scope.region, volume);
    const path = address.path;
    const bucketExchange: BucketExchange = {
      ...exchange,
      volume,
      contents,
      objects: contents.objects(volume),
      uploads: contents.uploads(volume),
      otherVolume: (id) => this.#volume(admitted.caller, id),
      asFailure: (error) => this.#failure(error, requestId),
      failureDocument: (error) => failureDocument(this.#failure(error, requestId), path, requestId),
    };
    await run(bucketExchange);
  }

  async #volume(caller: Caller, id: string): Promise<NetworkVolume> {
    try {
      return await this.#parts.volumes.get(caller, id);
    } catch (error) {
      if (error instanceof BerthError && error.code === 'not-found')
        throw new S3Failure(
          'NoSuchBucket',
          'The specified bucket does not exist: there is no network volume with this id',
          { BucketName: id.slice(0, 80) },
        );
      throw error;
    }
  }

  #failure(error: unknown, requestId: string): S3Failure {
    if (error instanceof S3Failure) return error;
    return failureOfDisk(error) ?? failureOf(asBerthError(error, this.#parts.log, requestId));
  }
}

/** A bucket is in one region: its data center. */
function checkRegion(region: string | undefined, { dataCenterId }: NetworkVolume): void {
  if (region === undefined || region.toLowerCase() === dataCenterId.toLowerCase()) return;
  throw new S3Failure(
    'AuthorizationHeaderMalformed',
    `the region '${region.slice(0, 64)}' is wrong; expecting '${dataCenterId}'`,
    { Region: dataCenterId },
  );
}

/** The client went away: there is nobody to answer, and nothing of ours is wrong. */
function isOver(request: IncomingMessage, response: ServerResponse): boolean {
  return response.destroyed || (request.destroyed && !request.complete);
}

function dropRest(request: IncomingMessage): void {
  if (request.complete || request.destroyed) return;
  let dropped = 0;
  request.on('data', (piece: Buffer) => {
    dropped += piece.length;
    if (dropped > MOST_DROPPED) request.destroy();
  });
  request.resume();
}
