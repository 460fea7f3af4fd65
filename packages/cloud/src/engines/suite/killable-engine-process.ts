import type { EngineModule } from './engine-fixture.ts';
import type { InstanceHandle, InstanceSpec } from '../instance.ts';

/** A Berth to be killed: opens an engine, starts what it is told, says the handles and stays. Arguments: the engine's module, its folder, the specs. */
const [, , module = '', folder = '', specs = '[]'] = process.argv;
const { openEngine } = (await import(module)) as EngineModule;
const engine = await openEngine(folder);
const handles: InstanceHandle[] = [];
for (const spec of JSON.parse(specs) as InstanceSpec[]) handles.push(await engine.start(spec));
process.stdout.write(JSON.stringify(handles));
setInterval(() => undefined, 60_000);
