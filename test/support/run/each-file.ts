import { failOnLeftovers } from '#test/support/run/leftovers.ts';

failOnLeftovers();
