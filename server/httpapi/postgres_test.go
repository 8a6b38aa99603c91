package httpapi_test

import (
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	_ "github.com/pawlwork/pawl/store/postgres" // its scheme
	"github.com/pawlwork/pawl/store/sqlite"
)

// shared is the database of the tests below TestU2_TheSameOnPostgres, each of which has a namespace of its own.
var shared struct {
	of string // the test
	db need.Database
}

// openStore is in memory, but for tests that run on Postgres.
func openStore(t *testing.T, c *pawl.Config) store.Opener {
	t.Helper()
	if shared.of == "" || !strings.HasPrefix(t.Name(), shared.of+"/") {
		return sqlite.Memory()
	}
	c.Namespace = strings.ToLower(t.Name()[len(shared.of)+1:])
	opener, err := store.Parse(shared.db.URL + "&pawl_schema=" + shared.db.Schema)
	if err != nil {
		t.Fatal(err)
	}
	return opener
}

// What the store decides is asked of both: these tests run on SQLite under their own names.
func TestU2_TheSameOnPostgres(t *testing.T) {
	shared.db, shared.of = need.Postgres(t), t.Name()
	t.Cleanup(func() { shared.of = "" })
	for _, one := range []struct {
		name string
		test func(*testing.T)
	}{
		{"Run", TestU2_AJobIsEnqueuedRunAndRead}, {"Readers", TestU2_WhatReadersWaitForIsTold}, {"Pages", TestU2_ListsArePagedByACursor}, {"Changes", TestU2_JobsAreChanged},
		{"BadJobs", TestU2_BadInputNamesTheFieldAndTheBound}, {"Work", TestU3_TheProtocolOfWorkers}, {"Workers", TestU2_WorkersServicesAndSettingsAreRead},
		{"Loads", TestU2_LoadsOfWorkersAreReadAndPaged}, {"Upkeep", TestU2_UpkeepIsRunAndSet}, {"Queue", TestU2_AQueueIsReadWithHowItStands},
		{"Pause", TestU2_AQueueIsPausedAndResumed}, {"Settings", TestU2_QueueSettingsAreSetOverWhatCodeDeclares}, {"Queues", TestU2_QueuesArePagedByACursor},
		{"BadQueues", TestU2_BadInputAboutQueuesIsRefused}, {"Kinds", TestU2_KindsAndEverythingArePaused},
		{"ScheduleSettings", TestU2_ASchedulesSettingsAreSetOverWhatCodeDeclares}, {"Schedules", TestU2_AScheduleIsCreatedPausedTriggeredAndDeleted},
		{"BadSchedules", TestU2_BadInputAboutSchedulesIsRefused}, {"LimitSettings", TestU2_ALimitsSettingsAreSetOverWhatCodeDeclares},
		{"Limits", TestU2_TokensOfALimitAreAcquiredAndDrained}, {"BadLimits", TestU2_BadInputAboutLimitsIsRefused},
		{"FewTokens", TestJ17_FewTokensAreHadAfterManyWereRefused},
		{"Bulk", TestU2_ABulkOperationGoesThroughAllThatMatches}, {"Operations", TestU2_OperationsAreListedAndCancelled},
		{"Why", TestU2_WhyPutsJobsWithOneCauseTogether}, {"Audit", TestU2_TheAuditLogIsPagedAndFiltered}, {"Check", TestU2_ACheckCountsAndGoesOn},
		{"Series", TestU2_SeriesAndFailuresTellWhatJobsCameTo}, {"Roles", TestU2_ARouteIsForItsRole}, {"Names", TestU2_StrangeNamesAreNoFaultOfTheServer},
		{"Once", TestU2_ARepeatedRequestEnqueuesOnce}, {"KeyOfAJob", TestU2_AJobWithAKeyIsEnqueuedOnceAfterARestartToo},
		{"KeyOfATrigger", TestU2_ATriggerWithAKeyEnqueuesOnce}, {"KeyOfAnOperation", TestU2_AnOperationWithAKeyIsBegunOnce},
		{"Tokens", TestU2_TokensAreTakenOnceByAKey}, {"Random", TestU2_RandomRequestsGetNoFault}, {"Manual", TestU2_TheCommandsOfTheManualWork},
		{"Events", TestU4_EventsAreAsDocumented}, {"FollowUps", TestU3_FollowUpsAreSentWithTheEnd}, {"Acquire", TestU3_ARemoteHandlerAcquires},
		{"HiddenAudit", TestU5_TheAuditLogHidesPayloads}, {"Publish", TestU2_EventsArePublishedAndRead}, {"EventPages", TestU2_EventsArePaged},
		{"Cursors", TestU2_ACursorIsReadSoughtAndDeleted}, {"Topics", TestU2_TopicsAreListed},
		{"Groups", TestU2_AGroupIsReadPausedReplayedAndSought}, {"Letters", TestU2_DeadLettersOfATopicAreReplayed}, {"BadGroups", TestU2_BadInputAboutGroupsIsRefused},
	} {
		t.Run(one.name, one.test)
	}
}
