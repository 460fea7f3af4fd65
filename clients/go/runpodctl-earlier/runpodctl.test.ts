import { runpodctlSuite } from '../runpodctl.suite.ts';

runpodctlSuite('runpodctl-earlier');
