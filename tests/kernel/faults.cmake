# Which tests notice that a control is missing. Where two controls refuse the same thing, both are
# left out, and the entry with one alone shows what the other still holds.
function(palmshed_fault faults filter)
  string(REPLACE "," "+" name ${faults})
  add_test(NAME fault.${name} COMMAND ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/expect_failures.sh
    $<TARGET_FILE:kernel_test_faulty> ${faults} ${filter} ${ARGN})
  set_tests_properties(fault.${name} PROPERTIES TIMEOUT 120)
endfunction()

set(guarantees "Escape.*:EscapeProcesses.*:Network.*:SystemCalls.*:Identity.*")

# The control: this build, with nothing left out, passes.
palmshed_fault(none "${guarantees}:Attributes.*:Files.*:Crash.Killed*")

# The first sandbox of an engine is made by the engine itself, and most tests make one only. With
# that switched off, they pass in a launcher's sandbox too; the projects in many languages, which take
# a minute, are left out, and so are limits, to which it makes no difference who made the sandbox.
# An engine with a defect keeps no self-tests.
palmshed_fault(no-direct "-Languages/*:Limits*:Disk*:*Storage*:CapabilitiesCache*")
# Nearly the whole suite, one test after another: 70 to 100 s.
set_tests_properties(fault.no-direct PROPERTIES TIMEOUT 300)

palmshed_fault(host-view "${guarantees}"
  Escape.DescendantsSeeNoMoreThanTheirParent
  Escape.DotsDoNotLeadOutOfTheView
  Escape.FilesOfOtherProjectsAreAbsent
  Escape.HomeDirectoryIsTheWorkspace
  Escape.HostConfigurationIsAbsent
  Escape.LinkToAHostFileLeadsNowhere
  Escape.NoMountIsWritableButTheSandboxsOwn
  Escape.PasswordFileNamesNobodyOfTheHost
  Escape.ProcLeadsToNoHostDirectory
  Escape.RuntimeCannotBeWritten
  Identity.HasANameAndAHome
  Network.PathSocketOfTheHostIsRefused)

palmshed_fault(writable-runtime "${guarantees}"
  Escape.NoMountIsWritableButTheSandboxsOwn
  Escape.RuntimeCannotBeWritten)

# Landlock's scope still holds the abstract sockets of the host.
palmshed_fault(host-network "${guarantees}"
  Network.AbstractSocketOfOneSandboxIsUnknownToAnother
  Network.LoopbackOfOneSandboxIsUnknownToAnother
  Network.NameServerOfTheHostIsOutOfReach
  Network.NoRouteLeadsOut
  Network.OrdinaryUserGetsTheSameIsolation
  Network.OrphanedDescendantReachesNoMore
  Network.TcpToTheHostIsRefused
  Network.TcpToTheHostOverIpv6IsRefused
  Network.UdpToTheHostIsRefused)

palmshed_fault(host-network,no-landlock "${guarantees}"
  Network.AbstractSocketOfOneSandboxIsUnknownToAnother
  Network.AbstractSocketOfTheHostIsRefused
  Network.LoopbackOfOneSandboxIsUnknownToAnother
  Network.NameServerOfTheHostIsOutOfReach
  Network.NoRouteLeadsOut
  Network.OrdinaryUserGetsTheSameIsolation
  Network.OrphanedDescendantReachesNoMore
  Network.TcpToTheHostIsRefused
  Network.TcpToTheHostOverIpv6IsRefused
  Network.UdpToTheHostIsRefused)

# Alone it is a second wall: the view and the network namespace hold.
palmshed_fault(no-landlock "${guarantees}")

palmshed_fault(no-seccomp "${guarantees}"
  Network.ExoticSocketFamiliesAreRefused
  SystemCalls.KeyringsAreClosed
  SystemCalls.NoNamespaceCanBeMade
  SystemCalls.SideDoorsAreClosed)

palmshed_fault(inherit-env "Attributes.*:EscapeProcesses.*"
  Attributes.EnvironmentOfTheHostProgramStaysOutside
  EscapeProcesses.OnlyTheSandboxsOwnProcessesAreVisible)

palmshed_fault(no-rlimits "Attributes.*"
  Attributes.AreACleanSlate
  Attributes.AreTheSameWhateverTheHostProgramHas)

palmshed_fault(shared-uid "Identity.*"
  root:Identity.LiveSandboxesOfRootHaveHostUidsOfTheirOwn)

palmshed_fault(follow-links "Archives.*:Escape.*:Files.*"
  Archives.PlantedLinksAreNotFollowed
  Archives.RacingLinksNeverWin
  Escape.DotsDoNotLeadOutOfTheView
  Escape.LinkToAHostFileLeadsNowhere
  Files.NothingIsWrittenThroughPlantedLinks
  Files.PlantedLinksLeadNowhere
  Files.RacingLinksNeverWin)

palmshed_fault(no-collector "Crash.Killed*:Crash.HostProgramEndingNormallyLeavesNothing"
  Crash.KilledHostProgramTakesEverythingAlong
  Crash.KilledHostProgramTakesEverythingAlongThoughItHasForked)

# Another kind of host rather than a defect: what is held there is held by something else. Left out
# is what only groups are exact enough for, or what takes their place away.
palmshed_fault(no-cgroups "Limits.*:LimitsOfProcesses.*:LimitsLife.*:-LimitsLife.Collector*:LimitsLife.GroupsThat*:LimitsLife.Idle*:Limits.ExecutionThatIsRefused*:Limits.ProgramRight*")

palmshed_fault(no-memory-limit "Limits.Memory*:LimitsOfProcesses.Orphans*"
  Limits.MemoryOfAnyProcessIsTheCause)

palmshed_fault(oom-not-reported "Limits.Memory*:LimitsOfProcesses.Orphans*"
  root:Limits.MemoryOfAnyProcessIsTheCause)

palmshed_fault(no-pids-limit "LimitsOfProcesses.Bomb*:LimitsOfProcesses.Orphans*"
  LimitsOfProcesses.BombEndsWithItsTimeoutAndLeavesNothing)

palmshed_fault(no-cpu-limit "Limits.SmallCpu*:Limits.Waiting*"
  Limits.SmallCpuBudgetHoldsThoughEverySignalIsIgnored)

palmshed_fault(limit-stays "Limits.EachExecution*:Limits.Waiting*"
  root:Limits.EachExecutionHasItsOwnAndTheNextHasNone)
