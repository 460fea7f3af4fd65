import { describe } from 'node:test';
import { itselfSuite } from './pod-access/itself.suite.ts';
import { portsSuite } from './pod-access/ports.suite.ts';
import { podStage } from './pod-access/stage.ts';
import { terminalSuite } from './pod-access/terminal.suite.ts';
import { usageSuite } from './pod-access/usage.suite.ts';
import { processEngine } from './support/engine-under-test.ts';

describe('access to pods, as processes', () => {
  const stage = podStage(async () => processEngine(), { dataCenterId: 'LOCAL-1', sharesPorts: true });
  portsSuite(stage);
  terminalSuite(stage);
  itselfSuite(stage);
  usageSuite(stage);
});
