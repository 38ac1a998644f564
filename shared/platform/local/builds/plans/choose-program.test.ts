import { expect, it } from 'vitest';
import { chooseProgram } from './choose-program.ts';

it.each<[string[], (string | undefined)[], string | undefined]>([
  [['anything'], ['shop'], 'anything'],
  [['shop', 'server'], ['shop'], 'shop'],
  [['migrate', 'server', 'api'], [undefined, 'shop'], 'server'],
  [['shop-server', 'shop-cli'], [], 'shop-server'],
  [['shopd', 'httpd'], [], 'httpd'],
  [['a-server', 'b-server'], [], undefined],
  [['observer', 'cli'], [], undefined],
  [[], ['shop'], undefined],
])('of the programs %j of an app called %j, %s is started', (programs, names, chosen) => {
  expect(chooseProgram(programs, names)).toBe(chosen);
});
