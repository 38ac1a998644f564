/**
 * Limits on the flows (connections, and exchanges of datagrams) that an app may have in the host's connection table. The table is
 * shared by everything on the host: when it is full, nobody else connects.
 */
import { interfacePrefix } from './network-plan.ts';

/** New flows that an app may open on average, and at once after it opened fewer. */
const perSecond = 200;
const burst = 2000;
/** Where an app's flows go, and how many it may have at a time. The kernel looks through all of them for each new one. */
const hooks = [
  { hook: 'forward', set: 'flows', atATime: 8192 },
  // To databases, which all apps share: more than the largest plan allows, and few of what the server accepts before a client has said
  // who it is.
  { hook: 'input', set: 'addon_flows', atATime: 80 },
] as const;

/** Name of the nftables table with these limits. It is not replaced when apps come and go: what it has counted stays. */
export function flowTable(platform: string): string {
  return `paas_${platform}_flows`;
}

/**
 * Rules that can be applied again without losing what they counted.
 * @param counts whether to limit flows at a time, which needs the kernel's nft_connlimit
 */
export function planFlowLimits(platform: string, counts: boolean): string {
  const table = `inet ${flowTable(platform)}`;
  const own = `iifname "${interfacePrefix(platform)}*" ct state new`;
  const lines = [
    `add table ${table}`,
    `add set ${table} rates { type ifname; size 65535; flags dynamic; }`,
    ...(counts ? hooks.map(({ set }) => `add set ${table} ${set} { type ifname; size 65535; flags dynamic; }`) : []),
    ...hooks.flatMap(({ hook, set, atATime }) => [
      `add chain ${table} ${hook} { type filter hook ${hook} priority filter - 11; }`,
      `flush chain ${table} ${hook}`,
      `add rule ${table} ${hook} ${own} update @rates { iifname limit rate over ${perSecond}/second burst ${burst} packets } drop`,
      ...(counts ? [`add rule ${table} ${hook} ${own} add @${set} { iifname ct count over ${atATime} } drop`] : []),
    ]),
  ];
  return `${lines.join('\n')}\n`;
}
