import { failOnOpenDatabases } from '#test/support/open-databases.ts';

failOnOpenDatabases();
