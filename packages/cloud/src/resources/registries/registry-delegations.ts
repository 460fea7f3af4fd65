import type { RegistryDelegation } from '../../domain/records.ts';
import { notFound, ruleError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';

const RESOURCE = 'registry delegation';
const ECR_ARN =
  /^arn:(aws|aws-cn|aws-us-gov):ecr:([a-z0-9-]+):(\d{6,20}):repository\/([a-z0-9][a-z0-9._/-]{0,255})(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?$/;

/** Access to an ECR repository of another AWS account, without storing its credentials. */
export class RegistryDelegations {
  readonly #context: ResourceContext;

  constructor(context: ResourceContext) {
    this.#context = context;
  }

  async create(caller: Caller, resource: string, name: string | null): Promise<RegistryDelegation> {
    const { store, clock, ids } = this.#context;
    const delegation: RegistryDelegation = {
      ...parseEcrArn(resource),
      id: ids.resource(),
      accountId: caller.accountId,
      name,
      createdAt: clock.now(),
    };
    await store.delegations.insert(
      delegation,
      auditEntry(this.#context, caller, 'create', RESOURCE, delegation.id),
    );
    return delegation;
  }

  list(caller: Caller): Promise<RegistryDelegation[]> {
    return this.#context.store.delegations.list(caller.accountId);
  }

  async remove(caller: Caller, id: string): Promise<void> {
    const removed = await this.#context.store.delegations.remove(
      caller.accountId,
      id,
      auditEntry(this.#context, caller, 'delete', RESOURCE, id),
    );
    if (!removed) throw notFound(RESOURCE, id);
  }
}

export function parseEcrArn(
  resource: string,
): Pick<RegistryDelegation, 'awsUser' | 'awsRegion' | 'repository' | 'tag'> {
  const [, , awsRegion, awsUser, repository, tag = 'latest'] = ECR_ARN.exec(resource) ?? [];
  if (awsRegion === undefined || awsUser === undefined || repository === undefined) {
    throw ruleError(
      'resource must be the ARN of an ECR repository, for example ' +
        'arn:aws:ecr:us-east-2:123456789012:repository/team/image',
    );
  }
  return { awsUser, awsRegion, repository, tag };
}

/** The registry host of a delegated repository. */
export function dockerRegistryUri({
  awsUser,
  awsRegion,
}: Pick<RegistryDelegation, 'awsUser' | 'awsRegion'>): string {
  return `${awsUser}.dkr.ecr.${awsRegion}.amazonaws.com${awsRegion.startsWith('cn-') ? '.cn' : ''}`;
}
