import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Readable } from 'node:stream';
import type { FlashArtifacts } from '../resources/flash/flash-artifacts.ts';
import { MAX_ARTIFACT_BYTES, artifactTooLargeError } from '../resources/flash/flash-artifacts.ts';
import { BerthError, notFound } from '../support/errors.ts';
import { streamInTurns } from './body-turns.ts';
import { toBerthError } from './http.errors.ts';
import { sendV2Error } from './rest-v2/rest-v2.errors.ts';

/** Files that a client puts and fetches with a link that it was given, and no key. */
export function artifactRoutes(artifacts: FlashArtifacts) {
  return async function mount(app: FastifyInstance): Promise<void> {
    app.removeAllContentTypeParsers();
    app.setErrorHandler((error, request, reply) =>
      sendV2Error(reply, toBerthError(error, request.log, request.id)),
    );
    app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));

    app.route({
      method: 'PUT',
      url: '/artifacts/*',
      bodyLimit: MAX_ARTIFACT_BYTES,
      onRequest: async (request) => {
        artifacts.verifyLink('PUT', ...linkOf(request));
        const announced = Number(request.headers['content-length'] ?? 0);
        if (announced > MAX_ARTIFACT_BYTES) throw artifactTooLargeError(announced);
      },
      handler: async (request, reply) => {
        const [objectKey] = linkOf(request);
        try {
          const body = streamInTurns(request.raw, (request.body ?? request.raw) as Readable);
          await artifacts.put(objectKey, body, request.id);
        } catch (error) {
          // The client closed the connection: nothing reads the answer, and it is not an internal error.
          throw request.raw.errored === null
            ? error
            : new BerthError('malformed', 'the upload broke off', { cause: error });
        }
        return reply.code(200).send();
      },
    });

    app.get('/artifacts/*', async (request, reply) => {
      const [objectKey, ...rest] = linkOf(request);
      artifacts.verifyLink('GET', objectKey, ...rest);
      const size = await artifacts.size(objectKey);
      if (size === undefined) throw notFound('file', objectKey);
      return reply
        .type('application/gzip')
        .header('content-length', size)
        .send(await artifacts.read(objectKey));
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
