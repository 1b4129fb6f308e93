"""Features of remote nodes by ragged lists, times weights: lists to the owners, rows back, product."""
import torch
import torch.distributed as dist


def operation(features, counts, ids, w, out) -> None:
    """features: [rows, k] and w: [n, k] in float16, counts: [world], ids: [most]; out: [most, n]."""
    wanted = counts.tolist()
    given = torch.empty_like(counts)
    dist.all_to_all_single(given, counts)
    given, total = given.tolist(), sum(wanted)
    asked = torch.empty(sum(given), dtype=ids.dtype, device=ids.device)
    dist.all_to_all_single(asked, ids[:total], given, wanted)
    rows = features.new_empty(total, features.shape[1])
    dist.all_to_all_single(rows, features[asked.long()], wanted, given)
    out[:total] = rows.float() @ w.float().t()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rows, depth, cols, most in ((256, 64, 32, 64), (512, 128, 64, 128)):
        draw = lambda n: torch.randint(-8, 9, (n, depth), device="cuda").half()
        counts = torch.full((dist.get_world_size(),), most // dist.get_world_size(), device="cuda")
        ids = torch.randint(0, rows, (most,), device="cuda")
        operation(draw(rows), counts, ids, draw(cols), torch.empty(most, cols, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
