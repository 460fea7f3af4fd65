import { after, before, describe } from 'node:test';
import { commandTests } from './commands.suite.ts';
import { engineFixture } from './engine-fixture.ts';
import type { EngineUnderTest } from './engine-fixture.ts';
import { lifecycleTests } from './lifecycle.suite.ts';
import { logTests } from './logs.suite.ts';
import { resourceTests } from './resources.suite.ts';
import { restartTests } from './restart.suite.ts';

/** What every driver keeps to. */
export function engineSuite(name: string, underTest: EngineUnderTest): void {
  describe(`${name} as an engine`, () => {
    const stage = engineFixture(underTest);
    before(stage.setUp);
    after(stage.tearDown);
    lifecycleTests(stage);
    logTests(stage);
    commandTests(stage);
    resourceTests(stage);
    restartTests(stage);
  });
}
