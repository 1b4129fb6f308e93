"""Features of remote nodes by ragged lists: lists to the owners, rows back."""
import torch
import torch.distributed as dist


def operation(features, counts, ids, out) -> None:
    wanted = counts.tolist()
    given = torch.empty_like(counts)
    dist.all_to_all_single(given, counts)
    given, total = given.tolist(), sum(wanted)
    asked = torch.empty(sum(given), dtype=ids.dtype, device=ids.device)
    dist.all_to_all_single(asked, ids[:total], given, wanted)
    dist.all_to_all_single(out[:total], features[asked.long()], wanted, given)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for rows, quads, most in ((64, 8, 128), (256, 16, 1024)):
        features = torch.randint(-(2**31), 2**31, (rows, 4 * quads), dtype=torch.int32, device="cuda")
        counts = torch.full((world,), most // world, dtype=torch.int32, device="cuda")
        ids = torch.randint(0, rows, (most,), dtype=torch.int32, device="cuda")
        operation(features, counts, ids, torch.empty(most, 4 * quads, dtype=torch.int32, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
