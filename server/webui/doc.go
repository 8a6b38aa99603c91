// Package webui is Mission Control: the pages with which people see and steer an engine.
//
//	request --> Handler (who, prefix) --> page --> load --> template, within the frame
//	                                  --> /live/… --> hub: one feed for each (page, query, role), rendered once for all viewers
//	                                  --> /do/{noun}/{verb} --> action (role, CSRF, audit) --> toast, or back to the page
//
// It needs no JavaScript for reading, asks nobody but its own server for anything, and shows what users wrote as text ([show]).
//
// # How to add a page
//
//  1. One noun, one file: queues.go with queues.html and queues.css beside it. All three are found by themselves.
//  2. Fill `var queuesPages = []page{{path: "/queues", name: "queues", title: "Queues", nav: nav{label: "Queues", icon: "n-queues",
//     order: 30, tab: true, key: "q", count: …}, load: …, regions: …}}`; registry.go names it already. A page with a nav is in the sidebar.
//  3. queues.html has {{define "queues"}}: its dot is a part, so .Data is what load read, .Now the store's clock, .Can operator asks for a
//     role. {{.Region "queue-rows"}} puts a region there; {{define "queue-rows"}} is its template; region.every makes it live.
//     Where the page has {{define "queues-top"}}, that is added to the top bar.
//  4. Strings of users always by {{show .Name 40}} (plain for attributes), times by {{ago $.Now .T}} {{since …}} {{at …}} {{atms …}},
//     numbers by
//     count, counted, duration, percent, bytes; links by {{link "/jobs" "queue" .Name}} or {{link "/queues/{}" .Name}}; {{pill "paused"}},
//     {{icon "paused" "c-paused"}}, {{spark .Points "g"}}, {{share .Used .Of}}, templates kpi, views, copy, why. No style=, no inline
//     script.
//     Charts: v.flow(queue, kind) reads metrics of the chosen range (page.ranges), (*flow).charts() draws them, see overview.html.
//  5. Read by v.look() (queues, counts, workers: shared, once a second) or cached(v, key, ttl, …), metrics by measured(…), for which a
//     page does not wait long; each page at most six bounded statements. page.calm where all of it is from the look.
//  6. What can be done is one line in `var queueActions = []action{{noun: "queue", verb: "pause", role: auth.Operator, label: "Pause", do:
//     …}}`;
//     {{.Button "queue" "pause" "name" .Name}} is its button, shown only to who may. With ask it opens a dialog first. Return
//     &outcome{Text: "exports is paused.", Undo: &call{…}}; the error of the engine is said by itself. Inline forms: data-editing keeps
//     them.
//     The overview and the frame have buttons of actions that others bring, shown once they are there: queue pause, resume, reset (of a
//     cool-down), each with the field name; queue freeze, unfreeze.
//  7. queues.css: @layer pages {…} and, for phones, @layer phone { @media (max-width: 820px) {…} }; tables with class "cards" turn into
//     cards.
//  8. Tests: open(t, m, "/queues") in a browser fails on console errors, failed requests and requests that leave loopback; see
//     frame_test.go.
package webui
