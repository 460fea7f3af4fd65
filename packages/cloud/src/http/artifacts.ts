import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Readable } from 'node:stream';
import type { Artifacts } from '../resources/flash/artifacts.ts';
import { MAX_ARTIFACT_BYTES, tooLarge } from '../resources/flash/artifacts.ts';
import { BerthError, notFound } from '../support/errors.ts';
import { asBerthError } from './failures.ts';
import { failV2 } from './rest-v2/failures.ts';

/** Files that a client puts and fetches with a link that it was given, and no key. */
export function artifactRoutes(artifacts: Artifacts) {
  return async function mount(app: FastifyInstance): Promise<void> {
    app.removeAllContentTypeParsers();
    app.setErrorHandler((error, request, reply) =>
      failV2(reply, asBerthError(error, request.log, request.id)),
    );
    app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));

    app.route({
      method: 'PUT',
      url: '/artifacts/*',
      bodyLimit: MAX_ARTIFACT_BYTES,
      onRequest: async (request) => {
        artifacts.check('PUT', ...linkOf(request));
        const announced = Number(request.headers['content-length'] ?? 0);
        if (announced > MAX_ARTIFACT_BYTES) throw tooLarge(announced);
      },
      handler: async (request, reply) => {
        const [objectKey] = linkOf(request);
        try {
          await artifacts.put(objectKey, (request.body ?? request.raw) as Readable, request.id);
        } catch (error) {
          // Whoever went away reads no answer; it is no defect of ours.
          throw request.raw.errored === null
            ? error
            : new BerthError('malformed', 'the upload broke off', { cause: error });
        }
        return reply.code(200).send();
      },
    });

    app.get('/artifacts/*', async (request, reply) => {
      const [objectKey, ...rest] = linkOf(request);
      artifacts.check('GET', objectKey, ...rest);
      const size = await artifacts.size(objectKey);
      if (size === undefined) throw notFound('file', objectKey);
      return reply.type('application/gzip').header('content-length', size).send(artifacts.read(objectKey));
    });

    app.route({
      method: ['POST', 'PATCH', 'DELETE'],
      url: '/artifacts/*',
      handler: () => {
        throw new BerthError('method', 'a link is for GET or for PUT', { headers: { allow: 'GET, PUT' } });
      },
    });
  };
}

function linkOf(request: FastifyRequest): [objectKey: string, expires: string, signature: string] {
  const { expires, signature } = request.query as Record<string, string | string[] | undefined>;
  return [(request.params as { '*': string })['*'], String(expires ?? ''), String(signature ?? '')];
}
