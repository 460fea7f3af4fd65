import { after, before, describe } from 'node:test';
import { commandTests } from './suite/commands.suite.ts';
import { engineStage } from './suite/engine-stage.ts';
import type { EngineUnderTest } from './suite/engine-stage.ts';
import { lifeTests } from './suite/life.suite.ts';
import { logTests } from './suite/logs.suite.ts';
import { machineTests } from './suite/machine.suite.ts';
import { restartTests } from './suite/restart.suite.ts';

/** What every driver keeps to. */
export function engineSuite(name: string, underTest: EngineUnderTest): void {
  describe(`${name} as an engine`, () => {
    const stage = engineStage(underTest);
    before(stage.setUp);
    after(stage.tearDown);
    lifeTests(stage);
    logTests(stage);
    commandTests(stage);
    machineTests(stage);
    restartTests(stage);
  });
}
