"""Which tests are slow: `make test` leaves them out, `make test-slow` runs them.

`make test` is what one waits for: at most fifteen minutes on two cores, with at least one test of each kind. What takes
long, and what tries one thing in every variation after the first, is here, in one table that can be weighed as a whole.
A test may be marked with `pytest.mark.slow` just as well.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SLOW: dict[str, tuple[str, ...]] = {
    # The whole story; its parts stay quick.
    "docs/test_fraud_story.py": (
        "test_the_story_is_told_from_raw_data_to_a_rollback_also_after_one_that_was_killed",
        "test_an_interrupted_story_leaves_nothing_running",
        "test_the_story_runs_on_spark_with_its_project_on_s3",
        "test_the_notebook_tells_the_story_with_figures",
    ),
    # Daemons in processes; a getter that is killed and a disk that is full stay quick.
    "faults/test_sharing_processes.py": (
        "test_a_daemon_that_was_killed_is_started_again_and_a_second_one_is_refused",
        "test_only_addresses_that_were_named_are_contacted",
    ),
    # The governor on every kind of link; one of each promise stays quick.
    "unit/sharing/governor/test_simulated.py": (
        "test_short_paths_are_left_whatever_the_queue",
        "test_longer_paths_are_left_also_when_processes_are_busy",
        "test_a_slow_start_on_a_long_path_is_seen_before_it_ends",
        "test_an_idle_link_is_filled",
        "test_four_transfers_share_a_link",
        "test_what_one_transfer_leaves_the_others_share",
        "test_several_transfers_give_way_together[4]",
    ),
    # Two daemons and a dozen commands in processes; everything they do is tried without processes, too.
    "scenario/test_sharing_walk.py": (),
    "browser/test_sharing_pages_in_browser.py": (),
    # TensorFlow takes seconds to import; readers and loaders of torch stay quick.
    "unit/compat/petastorm/test_tf_datasets.py": (),
    "spark/test_spark_petastorm.py": (),
    # Spark, TensorFlow and a benchmark; every other slide stays quick.
    "scenario/slides/test_slide_01_grid_on_tflauncher.py": ("test_on_spark",),
    "scenario/slides/test_slide_04_notebook_as_a_job.py": (
        "test_on_spark",
        "test_an_exit_status_is_returned_and_an_error_is_raised",
    ),
    "scenario/slides/test_slide_06_grid_of_unequal_lists.py": ("test_on_spark_as_the_program_s_own_session",),
    "scenario/slides/test_slide_07_allreduce.py": ("test_on_spark", "test_with_tensorflow_2"),
    "scenario/slides/test_slide_10_versioned_resources.py": (),
    "scenario/slides/test_slide_12_features_and_model.py": ("test_data_is_shared_out_and_the_model_handed_on",),
    "scenario/slides/test_slide_13_collective_all_reduce.py": (),
    "scenario/slides/test_slide_16_init.py": (),
    "scenario/slides/test_slides_17_to_20_horovod.py": (
        "test_17_each_rank_computes_on_a_device_of_its_own",
        "test_17_a_rank_may_see_no_other_gpu",
        "test_18_ranks_begin_alike_and_stay_alike",
        "test_19_one_step_is_the_mean_of_all_gradients",
        "test_20_rank_0_saves_and_other_numbers_of_ranks_go_on",
    ),
    "scenario/slides/test_slide_22_benchmark_report.py": (),
    # A run, a grid and a gang by the names of hops stay quick.
    "unit/compat/hops/test_hops_experiment.py": (
        "test_differential_evolution_returns_two_things_or_three",
        "test_random_search_stays_inside_the_boundaries",
        "test_old_names_of_arguments_and_the_old_order_work",
        "test_a_function_without_a_score_runs_for_each_row",
    ),
    # A gang that loads torch; ranks of Horovod that are forked stay quick.
    "scenario/slides/test_slide_03_horovod_script.py": (),
    # Two ranks that load TensorFlow; Keras on torch stays quick.
    "unit/compat/horovod/test_horovod_tensorflow.py": (),
    "unit/compat/horovod/test_horovod_keras_names.py": (),
    "unit/compat/hops/test_hops_helpers.py": ("test_a_job_runs_beside_its_caller",),
    # Fits in processes of their own; what cannot be fitted stays quick.
    "spark/test_spark_horovod_estimators.py": (
        "test_a_network_of_torch_is_fitted_goes_on_and_is_saved",
        "test_it_is_fitted_on_executors_from_parquet",
        "test_a_model_of_keras_is_fitted",
    ),
    # An environment of its own, and a whole Airflow.
    "scenario/test_airflow_provider.py": (),
    # A deployment with a script; its parts are tested quickly, without processes.
    "scenario/test_hopsworks_tutorial.py": (),
    "spark/test_spark_hopsworks.py": (),
    # Models that are divided among ranks, a training by one rank, and Keras; plain ranks of torch stay quick.
    "unit/compat/maggy/test_maggy_torch.py": (
        "test_ranks_share_the_data_and_agree_on_the_weights[3]",
        "test_a_single_process_computes_what_it_computed_before",
    ),
    "unit/compat/maggy/test_maggy_callbacks.py": ("test_fit_broadcasts",),
    "unit/compat/maggy/test_maggy_ablation.py": (
        "test_a_study_of_0_3_is_given_by_keywords_and_may_be_repeated",
        "test_an_ablator_of_the_users_own",
        "test_a_training_dataset_of_the_feature_store_is_read_without_a_feature",
    ),
    # Keras; operations and optimizers of torch stay quick.
    "unit/compat/horovod/test_horovod_keras.py": (),
    "scenario/test_maggy_tensorflow.py": (),
    "scenario/test_hops_servings.py": ("test_a_saved_model_is_served",),
    "scenario/slides/test_slide_11_features_by_name.py": ("test_the_line_of_the_slide_on_spark",),
    # Rolls with replicas killed, a version that cannot be loaded, an adoption and a full disk stay quick.
    "faults/test_lost_deployments.py": (
        "test_a_replica_that_crashes_or_hangs_costs_only_the_request_that_did_it",
        "test_a_replica_that_leaks_is_replaced_without_a_gap",
        "test_a_front_that_is_killed_comes_back_on_the_same_port",
        "test_a_host_that_is_killed_is_replaced_with_its_replicas",
        "test_everything_killed_at_once_starts_again_as_it_was",
        "test_what_a_lost_supervisor_left_ends_by_itself",
        "test_what_a_lost_supervisor_left_can_be_stopped",
        "test_a_second_supervisor_is_refused_and_told_which_has_it",
        "test_secrets_are_in_no_file_that_others_read",
        "test_a_deployment_ends_with_the_process_that_made_it_even_if_that_is_killed",
    ),
    "faults/test_killed_own_calls.py": (),
    # Programs under horovodrun, and functions, stay quick.
    "scenario/test_horovod_programs.py": (
        "test_each_rank_may_be_started_by_hand_with_an_address",
        "test_nothing_is_left_when_the_launcher_is_ended[15]",
    ),
    # A function of which a rank is killed stays quick.
    "faults/test_lost_horovod_ranks.py": (
        "test_the_rank_that_the_others_meet_at_may_be_lost_too",
        "test_a_rank_of_two_is_replaced_and_begins_with_the_state_of_the_other",
        "test_fewer_than_the_least_are_an_error_within_the_deadline",
        "test_ranks_join_when_hosts_are_found_and_leave_when_they_are_gone",
    ),
    "faults/test_own_calls_of_deployments.py": (
        "test_a_pipeline_that_loses_its_process_deploys_and_rolls_once[before]",
        "test_a_function_that_is_deployed_is_registered_once_and_a_second_run_is_refused",
    ),
    # A release by figures, and scaling to zero and back, stay quick.
    "scenario/test_deployed_models.py": (
        "test_functions_stand_before_and_after_the_model",
        "test_a_canary_is_judged_by_a_function_of_the_user",
        "test_a_shadow_is_compared_and_not_served",
        "test_equal_values_of_a_field_always_meet_the_same_version",
        "test_more_requests_bring_more_replicas_within_the_bounds",
        "test_what_models_print_is_kept",
    ),
    # A watcher that is killed stays quick, and so does the guide, which serves, watches and compares.
    "scenario/test_watched_models.py": (),
    "scenario/test_watched_deployments.py": (
        "test_labels_that_come_late_say_that_errors_rose",
        "test_a_watcher_ends_with_the_process_that_it_belongs_to",
        "test_what_is_asked_for_anew_goes_on_where_it_was",
        "test_only_what_comes_is_watched_if_asked",
    ),
    # A cluster, and executors that come and go; one search on it stays quick.
    "spark/test_spark_blocks.py": (),
    "spark/test_spark_contract.py": (),
    "spark/test_spark_data.py": (),
    "spark/test_spark_estimators.py": (),
    "unit/data/sources/test_formats_anywhere.py": (
        "test_every_format_is_read_from[moto]",
        "test_every_format_is_read_from[seaweed]",
        "test_every_format_is_read_from[hdfs]",
    ),
    # TensorFlow takes long to import; a file that it has written stays quick.
    "unit/data/sources/test_tfrecord.py": ("test_tensorflow_reads_what_is_written_here_and_the_other_way_round",),
    "unit/estimators/test_scikit.py": ("test_scikit_learns_own_checks_pass",),
    "spark/test_spark_groups.py": (),
    "spark/test_spark_horovod.py": (),
    "spark/test_spark_maggy.py": (),
    "spark/test_spark_monitoring.py": (),
    # A driver that is killed, and a step, stay quick.
    "faults/test_lost_pipelines.py": (
        "test_ctrl_c_ends_the_steps_and_the_run_can_be_resumed",
        "test_a_template_that_is_killed_costs_no_attempt",
        "test_a_driver_may_die_between_any_two_lines_of_its_journal",
        "test_a_run_in_a_process_of_its_own_is_cancelled_from_here",
    ),
    "scenario/test_pipelines_on_storage.py": (),
    "unit/serving/front/test_load_over_http.py": (
        "test_answers_are_never_mixed_up[v1]",
        "test_answers_are_never_mixed_up[v2]",
    ),
    # A replica that crashes, one that is killed, and a roll stay quick.
    "unit/serving/front/test_faults_over_http.py": (
        "test_a_model_that_hangs_is_given_up_and_tried_once_more",
        "test_a_front_that_is_killed_is_followed_by_another_and_the_replicas_come_back",
        "test_a_replica_without_front_ends_after_its_grace_time",
        "test_a_new_supervisor_is_told_how_things_stand",
        "test_answers_that_are_no_numbers_are_not_sent",
        "test_strangers_on_the_sockets_are_refused",
    ),
    # A thousand windows and more, and forty references; a small reference stays quick.
    "unit/monitoring/calibrating/test_false_alarms.py": (
        "test_false_alarms_are_as_many_as_were_asked_for[columns of all kinds]",
        "test_false_alarms_are_as_many_as_were_asked_for[three rows]",
        "test_a_lower_rate_gives_fewer_alarms",
        "test_false_alarms_are_as_many_as_were_asked_for[a size between those that are calibrated]",
        "test_28_columns_keep_the_rate_and_find_small_shifts",
        "test_a_window_larger_than_the_reference_keeps_the_rate_over_references",
    ),
    # Four processes at once, and one kind of death, stay quick.
    "faults/test_lost_commits.py": (
        "test_a_process_that_is_killed_at_any_moment_leaves_whole_batches",
        "test_a_process_that_is_killed_leaves_all_or_nothing[insert-after]",
        "test_a_process_that_is_killed_leaves_all_or_nothing[compact-after]",
        "test_a_process_that_is_killed_leaves_all_or_nothing[delete-before]",
        "test_a_process_that_is_killed_leaves_all_or_nothing[delete-after]",
    ),
    # Redis, which has no locks, stays quick.
    "contract/test_online_stores_contract.py": (
        "test_processes_that_insert_at_once_lose_nothing[sqlite]",
        "test_processes_that_insert_at_once_lose_nothing[lmdb]",
        "test_a_materialization_that_is_killed_leaves_what_was_there[sqlite]",
    ),
    # One kind of object storage stays quick.
    "scenario/test_groups_on_storage.py": (
        "test_writers_at_once_lose_nothing[seaweed]",
        "test_a_group_lives_on_the_storage[seaweed]",
    ),
    "scenario/test_log_on_storage.py": ("test_the_log_lives_on_the_storage[seaweed]",),
    # A registry on moto, and hosts that share look-ups through it, stay quick.
    "scenario/test_deployments_on_storage.py": (),
    "scenario/test_watched_on_storage.py": (),
    # A call whose driver died stays quick.
    "scenario/test_products_in_pipelines.py": (
        "test_data_search_and_model_are_steps_and_are_made_once",
        "test_a_call_that_raised_raises_the_same_again_on_resume",
    ),
    "scenario/test_deployed_over_grpc.py": ("test_a_deployment_speaks_grpc_on_one_port_whatever_ends",),
    "scenario/test_views_on_storage.py": ("test_features_are_joined_kept_and_looked_up_from_the_storage[moto]",),
    "spark/test_spark_faults.py": (),
    "spark/test_spark_features.py": (),
    "spark/test_spark_files.py": (),
    "spark/test_spark_networks.py": (),
    "spark/test_spark_places.py": (),
    "spark/test_spark_steps.py": (),
    "spark/test_spark_tables.py": (),
    "spark/test_spark_tfos.py": (),
    "spark/test_spark_search.py": (
        "test_the_command_line_runs_on_spark",
        "test_a_search_on_a_session_of_our_own_with_java_from_pypi",
        "test_executors_come_and_go_with_the_work",
    ),
    # A writer that is killed at each moment; several writers at once stay quick.
    "unit/data/tables/test_many_writers.py": ("test_a_writer_that_is_killed_at_any_moment_leaves_nothing_half",),
    "unit/models/test_many_registrations.py": ("test_a_writer_that_is_killed_at_any_moment_leaves_nothing_half",),
    "scenario/test_models_from_trials.py": (
        "test_a_driver_that_is_killed_loses_no_model_and_registers_none_twice[after]",
        "test_what_a_train_function_keeps_is_registered_when_the_trial_has_completed[0]",
        "test_of_a_gang_rank_0_keeps_the_model",
        "test_the_command_line_registers_a_trial",
        "test_a_checkpoint_becomes_a_model_by_its_factory",
    ),
    "unit/data/tables/test_writing.py": ("test_memory_holds_a_piece_of_a_long_stream",),
    "browser/test_tables.py": (),
    "browser/test_every_page.py": (),
    "browser/test_start_page.py": (),
    "browser/test_lineage_walk.py": (),
    "browser/test_shipping_pages.py": (),
    "browser/test_pipeline_runs.py": (),
    "browser/test_monitors_in_browser.py": (),
    # Columns, positions, strangers' messages and pieces stay quick.
    "unit/serving/inference_log/kafka/test_kafka_following.py": (
        "test_partitions_advance_together_so_that_rows_come_about_in_time",
        "test_a_topic_that_is_not_there_yet_is_empty",
    ),
    "scenario/test_served_in_a_pod.py": (),
    "scenario/test_tables_on_storage.py": (
        "test_a_table_is_written_to_the_storage_and_read_there[seaweed]",
        "test_writers_at_once_get_numbers_without_gaps",
        "test_small_files_on_the_storage_are_packed",
        "test_a_frame_given_to_an_experiment_lies_on_the_storage",
    ),
    # Tours through the dashboard; the list, the hostile experiment and the token stay quick.
    "browser/test_dashboard.py": (
        "test_every_figure_is_drawn_and_saved",
        "test_brushing_selects_trials_in_the_table",
        "test_ten_thousand_trials_are_scrolled_sorted_and_filtered",
        "test_chosen_trials_and_experiments_are_compared",
        "test_a_failed_trial_shows_why",
        "test_curves_are_looked_at_on_a_log_axis_and_smoothed",
        "test_tags_notes_and_marks_are_written_from_the_page",
        "test_axe_finds_nothing_to_complain_about",
        "test_states_and_the_last_column_are_whole_on_a_usual_screen",
        "test_on_a_phone_the_header_scrolls_away_and_sections_stay",
        "test_columns_are_chosen_and_remembered",
        "test_a_running_experiment_is_followed_and_stopped",
        "test_a_phone_needs_no_sideways_scrolling",
        "test_colours_follow_the_system_until_somebody_chooses",
        "test_the_keyboard_reaches_everything",
    ),
    "browser/test_usage_section.py": (),
    # Frameworks that take seconds to import in each rank; jax and one gang on torch stay quick.
    "docs/test_site.py": (),
    "docs/test_examples.py": (
        "test_digits_is_searched",
        "test_ranks_train_with_torch_and_survive_a_death",
        "test_ranks_train_with_tensorflow",
        "test_ranks_train_with_keras",
        "test_a_gang_trains_digits[diloco]",
        "test_workers_train_digits_through_servers",
        "test_a_model_split_over_two_processes_learns",
        "test_a_pipeline_goes_from_data_to_a_model_that_is_served_and_watched",
        "test_keras_fits_digits_with_a_gang_on_tensorflow",
        "test_a_function_is_an_estimator_of_spark",
        "test_a_served_model_is_watched_and_a_better_one_takes_its_place",
    ),
    "docs/test_coming_from.py": (
        "test_programs_that_need_only_torch_run_unchanged",
        "test_programs_of_frameworks_run_unchanged",
    ),
    "docs/test_snippets.py": (
        "test_the_code_of_a_page_runs[docs/guides/coming-from.md]",
        "test_the_code_of_a_page_runs[docs/guides/coming-from-horovod.md]",
        "test_the_code_of_a_page_runs[docs/guides/coming-from-hopsworks.md]",
        "test_the_code_of_a_page_runs[docs/guides/coming-from-tensorflowonspark.md]",
        "test_the_code_of_a_page_runs[docs/guides/training-in-a-rank.md]",
        "test_the_code_of_a_page_runs[docs/guides/spark.md]",
        "test_the_code_of_a_page_runs[docs/guides/callbacks.md]",
        "test_the_code_of_a_page_runs[docs/guides/distributed.md]",
        "test_the_code_of_a_page_runs[docs/guides/monitoring.md]",
        "test_the_code_of_a_page_runs[docs/guides/checkpoints.md]",
        "test_the_code_of_a_page_runs[docs/guides/model-flavours.md]",
    ),
    "scenario/test_bench_train.py": (
        "test_every_way_is_measured",
        "test_the_report_has_the_shape_people_know_and_the_page_its_figures",
        "test_what_is_sent_is_what_the_way_needs",
        "test_synchronous_ways_learn_the_same",
        "test_only_servers_know_of_delays",
    ),
    "scenario/test_torch_training.py": (),
    "scenario/test_gangs.py": ("test_code_written_for_torchrun_runs_unchanged",),
    "scenario/test_programs_of_torchrun.py": (
        "test_groups_one_after_the_other_meet_and_an_address_of_the_programs_own_does_no_harm[imports_torch_late]",
        "test_processes_that_a_rank_starts_are_a_group_of_their_own",
    ),
    "scenario/test_gang_checkpoints.py": (),
    "unit/training/test_prepare_gang.py": ("test_all_strategies_that_average_gradients_compute_the_same",),
    "unit/training/test_prepare_states.py": (
        "test_a_state_goes_on_under_every_strategy_and_alone",
        "test_every_compression_reaches_nearly_what_plain_gradients_reach",
    ),
    "unit/training/test_resumed_rows.py": (
        "test_every_strategy_goes_on_with_every_optimizer",
        "test_every_way_of_loading_goes_on",
    ),
    "faults/test_lost_rows.py": (),
    "unit/training/parameter_server/test_parameter_server_gang.py": ("test_two_workers_train_through_two_servers",),
    "unit/training/test_keras_averaging.py": ("test_ranks_that_begin_differently_end_alike",),
    "unit/experiments/trial/callbacks/test_framework_callbacks.py": (
        "test_lightning_reports_epochs",
        "test_lightning_stops_and_goes_on_from_a_checkpoint",
        "test_lightning_reports_each_validation",
        "test_lightning_says_which_metrics_there_are",
        "test_transformers_reports_evaluations",
        "test_transformers_goes_on_from_what_its_trainer_saved",
        "test_keras_reports_stops_and_goes_on",
        "test_sklearn_estimators_learn_in_steps_stop_and_go_on[histogram]",
        "test_callbacks_do_nothing_special_outside_a_trial",
    ),
    "unit/data/loading/test_frameworks.py": (
        "test_torch_with_processes_of_every_kind",
        "test_keras_and_tensorflow",
        "test_keras_on_torch",
        "test_lightning",
    ),
    # A new environment with everything installed.
    "scenario/test_reproduce.py": ("test_a_fresh_environment_is_made_from_the_recorded_packages",),
    # The same for every optimizer; the contract of each stays quick.
    "scenario/test_resume_each_optimizer.py": (),
    "scenario/test_warm_start.py": (
        "test_every_optimizer_can_begin_warm_and_be_resumed",
        "test_several_experiments_another_metric_and_a_smaller_space_fit_together",
    ),
    "unit/search/optimizers/test_hyperband.py": ("test_a_longer_function_gets_more_brackets",),
    # Waiting: for storage that is away, for searches that were killed, for ranks that hang.
    "scenario/test_shared_storage.py": (
        "test_a_running_search_is_followed_and_stopped_from_elsewhere",
        "test_what_a_killed_driver_had_not_sent_is_sent_by_the_next_command",
        "test_a_storage_that_is_away_for_a_while_costs_nothing",
        "test_segments_are_merged_and_readers_do_not_notice",
    ),
    "faults/test_reports_once.py": (
        *(
            f"test_agents_die_and_every_report_is_there_once[{way}]"
            for way in ("plain", "saving first", "with other metrics", "never saving", "saving seldom")
        ),
        *(f"test_a_driver_ends_and_what_ran_goes_on_with_every_report_once[{number}]" for number in (1, 2, 9)),
    ),
    "faults/test_lost_ranks.py": (
        "test_ranks_that_die_stall_or_leave_early_in_torch",
        "test_a_gang_that_stands_still_is_ended",
    ),
    "faults/test_lost_place.py": (
        "test_a_gang_sees_every_row_once_when_one_of_it_is_killed[agent]",
        "test_a_gang_sees_every_row_once_when_one_of_it_is_killed[rank]",
        "test_three_ranks_become_two_in_the_middle_of_an_epoch",
        "test_a_prepared_loop_sees_every_row_once",
    ),
    # Schedulers that are killed in real time; the same is tested in virtual time, at every write.
    "faults/test_killed_schedulers.py": ("test_two_schedulers_and_one_killed_after_the_other",),
    "scenario/test_schedules_on_storage.py": (
        "test_a_run_of_a_project_on_the_storage_is_seen_by_a_scheduler_of_another_host",
    ),
    "faults/test_lost_predictions.py": (
        "test_a_killed_call_goes_on_where_it_was[2]",
        "test_a_piece_whose_process_is_killed_is_predicted_by_another[agent]",
        "test_a_predict_that_hangs_is_ended_and_named",
    ),
    "scenario/test_fed_from_storage.py": (
        "test_a_trial_is_fed_from_the_storage_and_loses_no_row[seaweed-address]",
        "test_a_trial_is_fed_from_the_storage_and_loses_no_row[seaweed-frame]",
        "test_predictions_go_to_the_storage",
    ),
}
"""By file below `tests`: the tests that are slow, without their parameters or with those that are; none means all."""


_MARKED = re.compile(r"mark\.slow|\bproject_there\b|\bproject_url\b")
"""The marks of tests, and the fixtures of `storage_servers` with marks on some of their parameters."""


def is_slow(file: str, test: str) -> bool:
    """Tell whether a test is in the table, by its file below `tests` and its name with parameters."""
    names = SLOW.get(file)
    return names is not None and (not names or test in names or test.partition("[")[0] in names)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of which no test would be run: most of what collecting takes is importing libraries for them."""
    tests = config.rootpath / "tests"
    if not collection_path.name.startswith("test_") or not collection_path.is_relative_to(tests):
        return None
    file = collection_path.relative_to(tests).as_posix()
    if config.option.markexpr == "not slow":
        return SLOW.get(file) == () or None
    if config.option.markexpr == "slow":
        return not may_be_slow(file, collection_path) or None
    return None


def may_be_slow(file: str, path: Path) -> bool:
    """Tell whether a file has slow tests: it is in the table, marks some itself, or runs on every storage server."""
    return file in SLOW or (path.is_file() and _MARKED.search(path.read_text(encoding="utf-8")) is not None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tests = config.rootpath / "tests"
    for item in items:
        if item.path.is_relative_to(tests) and is_slow(item.path.relative_to(tests).as_posix(), item.name):
            item.add_marker(pytest.mark.slow)
