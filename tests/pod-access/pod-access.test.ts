import { describe } from 'node:test';
import { podSelfAccessSuite } from './pod-self-access.suite.ts';
import { podPortsSuite } from './pod-ports.suite.ts';
import { podAccessFixture } from '../../packages/testing/src/pod-access-fixture.ts';
import { podTerminalSuite } from './pod-terminal.suite.ts';
import { podUsageSuite } from './pod-usage.suite.ts';
import { processEngineFixture } from '../../packages/testing/src/engine-fixture.ts';

describe('access to pods, as processes', () => {
  const fixture = podAccessFixture(async () => processEngineFixture(), {
    dataCenterId: 'LOCAL-1',
    sharesPorts: true,
  });
  podPortsSuite(fixture);
  podTerminalSuite(fixture);
  podSelfAccessSuite(fixture);
  podUsageSuite(fixture);
});
