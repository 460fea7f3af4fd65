import { limitsType } from './limits.setting.ts';
import { urlType } from './setting-type.ts';
import { defineSetting } from './setting.ts';

/** Limits of what accounts may own and use. */
export const accountLimitSettings = {
  'limits.account': defineSetting({
    type: limitsType(),
    default: {},
    description:
      'The default limits of every account except the root account: see docs/quotas.md. Without an ' +
      'entry there is no limit. `berth account limits` sets the limits of one account, which take ' +
      'precedence.',
    example: 'limits:\n  account: { queuedJobs: 100000, queuedBytes: 1GB, pods: 20, spendPerMonth: 500 }',
  }),
  'limits.installation': defineSetting({
    type: limitsType(),
    default: {},
    description: 'The limits of all accounts together, with the same names.',
    example: 'limits:\n  installation: { volumeBytes: 2TB, queuedBytes: 10GB }',
  }),
  'limits.webhook': defineSetting({
    type: urlType(),
    default: '',
    description:
      'A URL that is called when an account has spent 80 % of its limit for the month, and when it ' +
      'has reached it. The body is signed like the webhooks of the root account.',
  }),
};
