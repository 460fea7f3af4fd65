import { runpodctlSuite } from '../runpodctl.suite.ts';

runpodctlSuite('runpodctl', { speaksV2: true });
