import type { Template } from '../records.ts';

/** What a person may set; the rest is Berth's. */
export type TemplateFields = Omit<Template, 'id' | 'accountId' | 'createdAt' | 'updatedAt'>;

export type NewTemplate = Pick<TemplateFields, 'name' | 'image'> & Partial<TemplateFields>;

/** The defaults of a template. Where an interface differs, it has defaults of its own. */
export const TEMPLATE_DEFAULTS: Omit<TemplateFields, 'name' | 'image'> = {
  args: '',
  containerDisk: 50,
  volumeSize: 0,
  volumePath: '/workspace',
  ports: [],
  portLabels: [],
  env: {},
  registryId: null,
  category: 'NVIDIA',
  public: false,
  serverless: false,
  readme: '',
  startSsh: true,
  startJupyter: true,
  startScript: '',
  advancedStart: false,
  allowedCudaVersions: [],
  config: null,
};

/** What REST v1 fills in for a template of pods; a serverless template has no volume. */
export const V1_TEMPLATE_DEFAULTS = { ports: ['8888/http', '22/tcp'], volumeSize: 20 };
