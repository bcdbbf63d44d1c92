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

palmshed_fault(follow-links "Escape.*:Files.*"
  Escape.DotsDoNotLeadOutOfTheView
  Escape.LinkToAHostFileLeadsNowhere
  Files.NothingIsWrittenThroughPlantedLinks
  Files.PlantedLinksLeadNowhere
  Files.RacingLinksNeverWin)

palmshed_fault(no-collector "Crash.Killed*:Crash.HostProgramEndingNormallyLeavesNothing"
  Crash.KilledHostProgramTakesEverythingAlong
  Crash.KilledHostProgramTakesEverythingAlongThoughItHasForked)
