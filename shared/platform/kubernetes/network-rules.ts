/** Rules of NetworkPolicies that the namespaces of tenants and of builds share. */

/** Networks that nobody's code reaches: private ones, those of providers, and the addresses of metadata services. */
const closedNetworks = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '169.254.0.0/16', '127.0.0.0/8'];
const closedNetworks6 = ['fc00::/7', 'fe80::/10', '::1/128', '64:ff9b::/96'];
/** Where the cluster's cache of DNS listens on each node, if it has one. */
const nodeLocalDns = '169.254.20.10/32';

const dnsPorts = [
  { protocol: 'UDP', port: 53 },
  { protocol: 'TCP', port: 53 },
];

/** All pods of a namespace, by its name. */
export const podsOfNamespace = (name: string): object => ({
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
});

/** To the cluster's DNS. */
export const dnsEgress: readonly object[] = [
  { to: [podsOfNamespace('kube-system')], ports: dnsPorts },
  { to: [{ ipBlock: { cidr: nodeLocalDns } }], ports: dnsPorts },
];

/** To the internet. @param allowed private networks that are reached too, as '10.1.0.0/16' */
export const internetEgress = (allowed: readonly string[]): readonly object[] => [
  {
    to: [
      { ipBlock: { cidr: '0.0.0.0/0', except: closedNetworks } },
      { ipBlock: { cidr: '::/0', except: closedNetworks6 } },
      ...allowed.map((cidr) => ({ ipBlock: { cidr } })),
    ],
  },
];
