import { after, before, describe } from 'node:test';
import { commandTests } from './commands.suite.ts';
import { engineSuiteFixture } from './engine-suite-fixture.ts';
import type { EngineUnderTest } from './engine-suite-fixture.ts';
import { lifecycleTests } from './lifecycle.suite.ts';
import { logTests } from './logs.suite.ts';
import { resourceTests } from './resources.suite.ts';
import { restartTests } from './restart.suite.ts';

/** The conformance tests of every driver. */
export function engineSuite(name: string, underTest: EngineUnderTest): void {
  describe(`${name} as an engine`, () => {
    const fixture = engineSuiteFixture(underTest);
    before(fixture.setUp);
    after(fixture.tearDown);
    lifecycleTests(fixture);
    logTests(fixture);
    commandTests(fixture);
    resourceTests(fixture);
    restartTests(fixture);
  });
}
