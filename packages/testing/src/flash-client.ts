import assert from 'node:assert/strict';
import type { ApiClient } from './api-client.ts';

/** One operation of GraphQL, which has to succeed. */
export async function askFlash<T>(client: ApiClient, query: string, input: unknown): Promise<T> {
  const { body, text } = await client.graphql<{ answer: T }>(query, { input });
  assert.equal(body.errors, undefined, text);
  return body.data?.answer as T;
}

export interface FlashDeployment {
  app: string;
  environment: string;
  /** The content of the uploaded file. */
  build: string;
  /** What runs its endpoint, which is named after the app. */
  image: string;
  /** Completes the upload; default: the client that began it. */
  finalizeAt?: ApiClient;
}

/** What the flash client does to deploy, in its order. */
export async function deployFlash(
  client: ApiClient,
  { app, environment, build, image, finalizeAt = client }: FlashDeployment,
): Promise<{ appId: string; endpointId: string }> {
  const ask = <T>(query: string, input: unknown, at = client): Promise<T> => askFlash<T>(at, query, input);
  const { id: appId } = await ask<{ id: string }>(
    'mutation ($input: CreateFlashAppInput) { answer: createFlashApp(input: $input) { id } }',
    { name: app },
  );
  const made = await ask<{ id: string }>(
    'mutation ($input: CreateFlashEnvironmentInput) { answer: createFlashEnvironment(input: $input) { id } }',
    { flashAppId: appId, name: environment },
  );
  const { uploadUrl, objectKey } = await ask<{ uploadUrl: string; objectKey: string }>(
    `mutation ($input: PrepareFlashArtifactUploadInput) { answer: prepareFlashArtifactUpload(input:
      $input) { uploadUrl objectKey } }`,
    { flashAppId: appId, tarballSize: build.length },
  );
  const headers = { 'content-type': 'application/gzip' };
  assert.equal((await fetch(uploadUrl, { method: 'PUT', headers, body: build })).status, 200);
  const { id: flashBuildId } = await ask<{ id: string }>(
    `mutation ($input: FinalizeFlashArtifactUploadInput) { answer:
      finalizeFlashArtifactUpload(input: $input) { id } }`,
    { flashAppId: appId, objectKey, manifest: {} },
    finalizeAt,
  );
  await ask(
    'mutation ($input: DeployBuildToEnvironmentInput) { answer: deployBuildToEnvironment(input: $input) { id } }',
    { flashEnvironmentId: made.id, flashBuildId },
  );
  const env = [
    { key: 'FLASH_APP', value: app },
    { key: 'FLASH_ENV', value: environment },
  ];
  const template = { name: app, imageName: image, containerDiskInGb: 5, dockerArgs: '', env };
  const { id: endpointId } = await ask<{ id: string }>(
    'mutation ($input: EndpointInput!) { answer: saveEndpoint(input: $input) { id } }',
    {
      name: app,
      flashEnvironmentId: made.id,
      template,
      instanceIds: ['cpu3c-2-4'],
      workersMin: 1,
      workersMax: 1,
      locations: 'EU-RO-1',
    },
  );
  return { appId, endpointId };
}

/** Answers with its input and what it finds in the file that flash's worker images unpack. */
export const FLASH_HANDLER = `
import { readFileSync } from 'node:fs';
export default async ({ input }: { input: unknown }) => ({ input, build: readFileSync(process.env['FLASH_BUILD_ARTIFACT_PATH'] ?? '', 'utf8') });
`;
