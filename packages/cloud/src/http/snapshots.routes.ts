import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import type { SnapshotUrls } from '../auth/snapshot-urls.ts';
import type { Images } from '../resources/images/images.ts';
import { BerthError, notFound } from '../support/errors.ts';
import { toBerthError } from './http.errors.ts';
import { sendV2Error } from './rest-v2/rest-v2.errors.ts';

export interface SnapshotRoutesDeps {
  images: Pick<Images, 'archive'>;
  urls: SnapshotUrls;
}

const SNAPSHOT_URL = /^\/snapshots\/[a-z0-9][a-z0-9._-]*\/[0-9a-f]{12}\/[A-Za-z0-9_-]{43}$/;

/** Whether it is for a deployed folder. The signature in the URL is checked by the route. */
export function isSnapshotRequest({ method, url = '' }: IncomingMessage): boolean {
  return method === 'GET' && SNAPSHOT_URL.test(url);
}

/** Where runners fetch the folders that they run. The URL itself is the right to do so. */
export function snapshotRoutes({ images, urls }: SnapshotRoutesDeps) {
  return async function mount(app: FastifyInstance): Promise<void> {
    app.setErrorHandler((error, request, reply) =>
      sendV2Error(reply, toBerthError(error, request.log, request.id)),
    );
    app.get<{ Params: { name: string; digest: string; signature: string } }>(
      '/snapshots/:name/:digest/:signature',
      async ({ params: { name, digest, signature } }, reply) => {
        if (!urls.verify(name, digest, signature))
          throw new BerthError('unauthenticated', 'this URL was not created by Berth');
        const archive = await images.archive(name, digest);
        if (archive === undefined) throw notFound('image', `${name}:${digest}`);
        return reply.type('application/x-tar').send(Readable.from(archive, { objectMode: false }));
      },
    );
  };
}
