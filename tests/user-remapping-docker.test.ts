import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { DockerClient } from '../packages/cloud/src/engines/docker/client/docker-client.ts';
import type { InspectedContainer } from '../packages/cloud/src/engines/docker/client/docker-objects.ts';
import { createTestImage } from '../packages/testing/src/docker-test-image.mjs';
import { containerLogLines } from '../packages/testing/src/pod-client.ts';
import {
  REMAPPED_ROOT,
  remappingProblem,
  startRemappingDaemon,
} from '../packages/testing/src/remapping-docker-daemon.ts';
import type { RemappingDaemon } from '../packages/testing/src/remapping-docker-daemon.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { DockerPods } from './isolation/docker-pod-fixture.ts';

/** What it is inside, and whether it reaches Berth. */
const SCRIPT = String.raw`
const fs = require('node:fs');
console.log('user ' + process.getuid() + ' is ' + /^\s*(\d+)\s+(\d+)/.exec(fs.readFileSync('/proc/self/uid_map', 'utf8')).slice(1).join(' -> '));
fs.writeFileSync('/own', 'its own disk');
fs.writeFileSync('/volume/of-the-pod', fs.readFileSync('/volume/uploaded'));
console.log('volume written');
fetch(process.env.RUNPOD_API_URL, { method: 'POST' }).then(({ status }) => console.log('berth answers ' + status), (error) => console.log('berth: ' + error.cause));
setInterval(() => {}, 1000);
`;

describe('a daemon that remaps users', { skip: remappingProblem() ?? false }, () => {
  let daemon: RemappingDaemon;
  let docker: DockerClient;
  let pods: DockerPods;

  before(async () => {
    daemon = await startRemappingDaemon();
    docker = new DockerClient(daemon.host);
    const image = await createTestImage(daemon.host, `localhost/berth-remapped:p${process.pid}`);
    pods = await DockerPods.start(daemon.host, image.name, 'requireUserNamespaces: true');
  });
  after(async () => {
    await pods?.stop();
    await daemon?.stop();
  });

  test('root in a pod is a user that this machine does not have, and the pod works', async () => {
    const ann = await pods.account('ann');
    const volume = await ann.call<{ id: string }>('POST', '/v2/network-volumes', {
      name: 'volume',
      size: 10,
      dataCenter: 'DOCKER-1',
    });
    const file = (name: string): string => `/s3/${volume.body.id}/${name}`;
    assert.equal((await ann.call('PUT', file('uploaded'), 'by S3')).status, 200);
    const { id } = await pods.run(ann, SCRIPT, {
      mounts: { network: [{ volumeId: volume.body.id, path: '/volume' }] },
    });
    const lines = await waitFor('the pod has looked around', async () => {
      const found = await containerLogLines(ann, id);
      return found.length >= 3 && found;
    });
    assert.equal(lines[0], `user 0 is 0 -> ${REMAPPED_ROOT}`);
    assert.equal(lines[1], 'volume written');
    assert.match(lines[2] ?? '', /^berth answers \d+$/);
    const written = await ann.call('GET', file('of-the-pod'));
    assert.deepEqual([written.status, written.text], [200, 'by S3']);
    const { State: state } = await docker.get<InspectedContainer>(`/containers/berth-${id}/json`);
    const owner = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${state.Pid}/status`, 'utf8'))?.[1];
    assert.equal(owner, String(REMAPPED_ROOT));
  });
});
