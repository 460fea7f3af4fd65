/** What capacity is wanted for. */
export type Product = 'POD' | 'CLUSTER' | 'SERVERLESS';
export type CpuProduct = Exclude<Product, 'CLUSTER'>;

/** How many machines' worth the smallest order of a product takes: a cluster has at least two pods. */
export const MIN_MACHINES: Readonly<Record<Product, number>> = { POD: 1, CLUSTER: 2, SERVERLESS: 1 };
