package webui

import "slices"

// allPages are those of all nouns; each noun's file has its own. A page that is not here is not in the sidebar either.
func allPages() []page {
	return slices.Concat(
		overviewPages, jobsPages, jobPages, queuesPages, cronPages, workersPages, limitsPages, streamsPages, groupsPages, servicesPages, auditPages, settingsPages,
		findPages,
	)
}

// allActions are those of all nouns.
func allActions() []action {
	return slices.Concat(
		jobActions, bulkActions, queueActions, cronActions, workerActions, limitActions, cursorActions, groupActions, serviceActions, settingsActions, tourActions,
	)
}

// allDownloads are those of all nouns.
func allDownloads() []download { return slices.Concat(jobDownloads) }
