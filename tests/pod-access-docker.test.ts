import { describe } from 'node:test';
import { itselfSuite } from './pod-access/itself.suite.ts';
import { portsSuite } from './pod-access/ports.suite.ts';
import { podStage } from './pod-access/stage.ts';
import { terminalSuite } from './pod-access/terminal.suite.ts';
import { usageSuite } from './pod-access/usage.suite.ts';
import { withDocker } from './support/docker.ts';
import { dockerEngine } from './support/engine-under-test.ts';

await withDocker((host) => {
  describe('access to pods, on Docker', () => {
    const stage = podStage(() => dockerEngine(host), { dataCenterId: 'DOCKER-1', sharesPorts: false });
    portsSuite(stage);
    terminalSuite(stage);
    itselfSuite(stage);
    usageSuite(stage);
  });
});
