import { failOnOpenDatabases } from '#test/support/database/open-databases.ts';

failOnOpenDatabases();
