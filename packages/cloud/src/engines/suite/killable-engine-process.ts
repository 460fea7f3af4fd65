import type { EngineModule } from './engine-suite-fixture.ts';
import type { InstanceHandle, InstanceSpec } from '../instance.ts';

/**
 * A process to be killed by a test: opens an engine, starts the given specs, prints their handles and waits.
 * Arguments: the engine's module, its folder, the specs.
 */
const [, , module = '', folder = '', specs = '[]'] = process.argv;
const { openEngine } = (await import(module)) as EngineModule;
const engine = await openEngine(folder);
const handles: InstanceHandle[] = [];
for (const spec of JSON.parse(specs) as InstanceSpec[]) handles.push(await engine.start(spec));
process.stdout.write(JSON.stringify(handles));
setInterval(() => undefined, 60_000);
