// Loaded into every test process: what it starts inherits the mark, by which leftover-processes.mjs finds it.
process.env['BERTH_TEST_PROCESS'] = String(process.pid);
