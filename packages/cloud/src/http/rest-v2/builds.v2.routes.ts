import { MAX_BUILDS_PAGE_SIZE } from '../../domain/limits.ts';
import type { AllServices } from '../../resources/resources.ts';
import { notFound } from '../../support/errors.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { integer, list, named, nullable, object, stringEnum, text } from '../rest/json-schema.ts';
import { byId, dateTime } from './common.v2.schema.ts';
import { pagination } from './pagination.v2.ts';

const build = named(
  'Build',
  object({
    id: text(),
    status: stringEnum([
      'PENDING',
      'BUILDING',
      'UPLOADING',
      'TESTING',
      'COMPLETED',
      'FAILED',
      'CANCELLED',
      'TEST_FAILED',
    ]),
    commitHash: nullable(text()),
    commitMessage: nullable(text()),
    branch: nullable(text()),
    commitDate: nullable(dateTime('When the commit was made')),
    imageName: nullable(text()),
    startedAt: nullable(dateTime('When it began')),
    completedAt: nullable(dateTime('When it ended')),
    error: nullable(text()),
  }),
);

const byBuild = object({ id: text({ minLength: 1 }), buildId: text({ minLength: 1 }) });

/**
 * Images are built where their source is and come here ready, so no endpoint has builds. Clients ask all the
 * same.
 */
export function buildOperations({ endpoints }: AllServices): Operation[] {
  const tag = 'Serverless';
  const none = async (
    caller: Parameters<typeof endpoints.get>[0],
    { id, buildId }: { id: string; buildId: string },
  ): Promise<never> => {
    await endpoints.get(caller, id);
    throw notFound('build', buildId);
  };
  return [
    operation({
      id: 'listBuilds',
      method: 'GET',
      path: '/serverless/{id}/builds',
      tag,
      summary: 'List the builds of an endpoint',
      access: 'read',
      description: 'Always empty: Berth does not build images.',
      params: byId,
      query: object(
        {},
        {
          cursor: text({ minLength: 1 }),
          limit: integer({ minimum: 1, maximum: MAX_BUILDS_PAGE_SIZE, default: MAX_BUILDS_PAGE_SIZE }),
        },
      ),
      status: 200,
      response: named('BuildList', object({ builds: list(build), pagination })),
      errorStatuses: [404, 422],
      handle: async ({ caller, params }) => {
        await endpoints.get(caller, params.id);
        return { builds: [], pagination: { nextCursor: null, hasNextPage: false } };
      },
    }),
    operation({
      id: 'getBuild',
      method: 'GET',
      path: '/serverless/{id}/builds/{buildId}',
      tag,
      summary: 'Show a build of an endpoint',
      access: 'read',
      params: byBuild,
      status: 200,
      response: build,
      errorStatuses: [404],
      handle: ({ caller, params }) => none(caller, params),
    }),
    operation({
      id: 'streamBuildLogs',
      method: 'GET',
      path: '/serverless/{id}/builds/{buildId}/logs',
      tag,
      summary: 'Follow the log of a build',
      access: 'read',
      eventStream: true,
      params: byBuild,
      status: 200,
      errorStatuses: [404],
      handle: ({ caller, params }) => none(caller, params),
    }),
  ];
}
