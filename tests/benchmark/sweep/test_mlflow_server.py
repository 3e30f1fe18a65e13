"""A sweep with a real MLflow server that is stopped and started in the middle."""

import numpy as np
from command import TINY
from mlflow_server import MlflowServer

from rollcall import Trial
from rollcall.benchmark.sweep.jobs import Job, run_inline
from rollcall.benchmark.sweep.mlflow_runs import Mirror
from rollcall.leaderboard.runs import load


def test_a_server_is_stopped_and_started_in_the_middle(store, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with MlflowServer(tmp_path) as server:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
        trial = Trial.read(TINY["trial"] | {"algorithm": "fedpbc"})
        jobs = [Job(trial.model_copy(update={"seed": seed}), "tiny", store) for seed in range(6)]
        mirror = Mirror(store, "tiny", [job.folder for job in jobs])

        def switching():
            for number, job in enumerate(jobs):
                mirror.look()
                if number == 2:
                    server.stop()
                if number == 4:
                    server.start()
                yield job

        run_inline(switching())
        mirror.end("finished", lambda folder: (folder / "table.md").write_text("six"))
        err = capsys.readouterr().err
        assert err.count("MLflow cannot be updated") == 1
        assert "MLflow answers again. Now copied: " in err

        client = mirror.runs.client
        rows = client.search_runs([mirror.runs.id], "tags.`rollcall.trial` != ''")
        assert {(row.info.run_name, row.info.status) for row in rows} == {(job.trial.name, "FINISHED") for job in jobs}
        assert {row.data.tags["mlflow.parentRunId"] for row in rows} == {mirror.runs.parent}
        for run in load(client, "tiny"):
            (job,) = (job for job in jobs if job.trial.digest == run.tags["rollcall.trial"])
            expected = job.folder.history().set_index("round")["train/distance"]
            assert run.history["train/distance"].to_dict() == expected.to_dict()
            (row,) = (row for row in rows if row.info.run_name == job.trial.name)
            with np.load(client.download_artifacts(row.info.run_id, "model.npz", str(tmp_path))) as kept:
                np.testing.assert_array_equal(kept["model"], job.folder.models()[0])
        assert [file.path for file in client.list_artifacts(mirror.runs.parent)] == ["table.md"]
        assert client.get_experiment(mirror.runs.id).artifact_location.startswith("mlflow-artifacts:")
