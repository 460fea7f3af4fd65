import { after, test } from 'node:test';
import { findOrStartDocker } from './docker-daemon.mjs';

/** Where the daemon of the whole run is. */
const HOST = 'BERTH_TEST_DOCKER_HOST';

/**
 * Runs stories with the daemon of the whole run, or else with one of this file alone. Files with such stories
 * are called `*-docker.test.ts`.
 */
export async function withDocker(stories: (host: string) => void): Promise<void> {
  const host = process.env[HOST];
  if (host !== undefined) return stories(host);
  const docker = await findOrStartDocker();
  if ('reason' in docker) return void test('stories with Docker', { skip: docker.reason }, () => undefined);
  stories(docker.host);
  after(() => docker.stop());
}
